// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/security/certificate.h"
#include "common/security/identity.h"
#include "common/security/secret.h"

namespace covey {

// What a process or a person shows to others, and whom it trusts: the files of one folder.
//
//   node.key   private key, readable by its owner alone
//   node.crt   certificate of the key, first; then those of authorities up to a root, if any
//   ca.crt     the roots that it trusts
//
// The texts are PEM, as in the files.
struct NodeCredentials {
  Secret key;
  std::string certificate;
  std::string roots;
  Identity identity;
  absl::Time not_before;
  absl::Time not_after;
};

// What such a folder holds, as far as it can be read, and all that is wrong with it.
struct NodeFolderReport {
  std::vector<Certificate> chain;  // of node.crt
  std::vector<Certificate> roots;  // of ca.crt
  std::optional<Identity> identity;
  // Each a sentence that says where, why and what to do; empty = a process can use the folder.
  std::vector<std::string> problems;
  // Set when there are no problems.
  std::optional<NodeCredentials> credentials;

  // When the certificate expires, or the first root if that is sooner; absent = there is neither.
  std::optional<absl::Time> Expiry() const;
};

// Reads and checks `folder`: the files, their modes and sizes; that the key is that of the
// certificate; its identity, dates and usage; that a root of ca.crt vouches for it. The folder may
// be replaced meanwhile: the files are those of one. Blocks on the disk.
NodeFolderReport InspectNodeFolder(const std::string& folder, absl::Time now);

// The same for a process, which needs all to be right. FAILED_PRECONDITION: the first problem, and
// how to see the others.
absl::StatusOr<NodeCredentials> LoadNodeCredentials(const std::string& folder, absl::Time now);

}  // namespace covey
