// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/cluster_certificates.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/console/text_file.h"
#include "common/base/status_macros.h"
#include "common/security/certificate_authority.h"
#include "common/security/credential_folder.h"
#include "common/security/identity.h"
#include "common/security/node_credentials.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kRootLifetime = absl::Hours(24 * 365);
// As `covey certificates issue` chooses.
constexpr absl::Duration kProcessLifetime = absl::Hours(24 * 7);
constexpr absl::Duration kPersonLifetime = absl::Hours(24 * 30);

absl::Duration LifetimeOf(IdentityRole role) {
  const bool is_person = role == IdentityRole::kViewer || role == IdentityRole::kAdmin;
  return is_person ? kPersonLifetime : kProcessLifetime;
}

// Whether the folder is of this identity, and in the first half of its life.
bool IsFresh(const std::string& folder, const Identity& identity, absl::Time now) {
  const NodeFolderReport report = InspectNodeFolder(folder, now);
  return report.problems.empty() && report.identity == identity &&
         report.credentials->not_after - now > LifetimeOf(identity.role) / 2;
}

}  // namespace

std::string CertificateFolder(const std::string& folder, absl::string_view role) {
  return absl::StrCat(folder, "/", role);
}

absl::Status PrepareCertificates(const std::string& folder, const std::string& job,
                                 absl::Time now) {
  const std::string authority_folder = absl::StrCat(folder, "/ca");
  if (!HasFile(authority_folder, kAuthorityKeyFile)) {
    if (HasFile(CertificateFolder(folder, "scheduler"), kNodeKeyFile)) {
      for (const IdentityRole role : kIdentityRoles) {
        if (role == IdentityRole::kClient || role == IdentityRole::kAdmin) continue;
        COVEY_RETURN_IF_ERROR(
            LoadNodeCredentials(CertificateFolder(folder, NameOf(role)), now).status());
      }
      return absl::OkStatus();
    }
    COVEY_RETURN_IF_ERROR(MakeFolder(folder));
    COVEY_RETURN_IF_ERROR(
        CertificateAuthority::Create(authority_folder, "covey", now, kRootLifetime));
  }
  COVEY_ASSIGN_OR_RETURN(const auto authority, CertificateAuthority::Open(authority_folder));
  for (const IdentityRole role : kIdentityRoles) {
    const Identity identity = {.trust_domain = authority->trust_domain(), .job = job, .role = role};
    const std::string of_role = CertificateFolder(folder, NameOf(role));
    if (IsFresh(of_role, identity, now)) continue;
    COVEY_RETURN_IF_ERROR(authority->Issue(identity, now, LifetimeOf(role), of_role).status());
  }
  return absl::OkStatus();
}

}  // namespace covey::cli
