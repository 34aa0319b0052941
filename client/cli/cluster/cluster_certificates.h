// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey::cli {

// The certificates of a cluster on plain hosts, in a folder of this machine:
//
//   ca/      the authority; it never leaves this machine
//   ROLE/    key and certificate of each role: scheduler, server, worker, client, viewer, admin
//
// Makes what is missing, and renews what is past half of its life. Without `ca` the folders of
// roles may come from another authority: then they are only checked. Blocks on the disk.
// FAILED_PRECONDITION, …: which folder, why and what to do.
absl::Status PrepareCertificates(const std::string& folder, const std::string& job, absl::Time now);

// The folder of a role in it. Pure.
std::string CertificateFolder(const std::string& folder, absl::string_view role);

}  // namespace covey::cli
