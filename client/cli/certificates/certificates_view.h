// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/security/certificate.h"
#include "common/security/certificate_authority.h"
#include "common/security/issued_record.h"
#include "common/security/node_credentials.h"

namespace covey::cli {

// What `covey certificates` prints, as text for people and as JSON for programs. Pure.

// "6 d 23 h", "4 h 10 min", "0 min"; "expired" for none.
std::string ShowLeft(absl::Duration left);

// A certificate that was issued just now into `folder`.
struct IssuedCertificate {
  std::string folder;
  Certificate certificate;
};
// A line for each.
std::string IssuedText(std::span<const IssuedCertificate> issued);
// An object for one, an array for several.
std::string IssuedJson(std::span<const IssuedCertificate> issued);

// Certificates that were taken back just now, by the word `what`. `is_unknown`: no folder of a
// scheduler was renewed.
std::string RevokedText(const std::string& folder, const std::string& what,
                        std::span<const IssuedRecord::Entry> revoked, bool is_unknown);
std::string RevokedJson(std::span<const IssuedRecord::Entry> revoked);

// The problems of an authority, each with a remedy.
std::vector<std::string> AuthorityProblems(const std::string& folder,
                                           const CertificateAuthority& authority, absl::Time now);
// What has to be done next, in the stage of the authority; empty = nothing.
std::string NextStep(const std::string& folder, CertificateAuthority::Stage stage);
std::string AuthorityText(const std::string& folder, const CertificateAuthority& authority,
                          absl::Time now);
std::string AuthorityJson(const std::string& folder, const CertificateAuthority& authority,
                          absl::Time now);

// A node's folder, with its problems.
std::string NodeText(const std::string& folder, const NodeFolderReport& report, absl::Time now);
std::string NodeJson(const std::string& folder, const NodeFolderReport& report, absl::Time now);

}  // namespace covey::cli
