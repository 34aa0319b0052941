// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/runtime/config_file.h"
#include "common/security/identity.h"

namespace covey::cli {

// What `covey certificates` is to do.
struct CertificatesOptions {
  enum class Action { kInit, kIssue, kRevoke, kRotate, kShow };
  enum class Step { kAdd, kUse, kRemove };

  Action action = Action::kShow;
  std::string folder;
  // Of revoke: a serial, or the URI of an identity.
  std::string revoked;
  // Of rotate and revoke: folders of nodes, to be renewed.
  std::vector<std::string> node_folders;
  // Of init.
  std::string trust_domain = "covey";
  // Of init, issue and rotate. Absent = Lifetime() chooses.
  std::optional<uint32_t> days;
  // Of issue; the trust domain is that of the authority.
  std::optional<IdentityRole> role;
  bool every_role = false;
  std::string job;
  bool every_job = false;
  std::optional<uint32_t> rank;
  std::string out;
  // Of rotate.
  std::optional<Step> step;
  bool force = false;
  // Of all.
  bool json = false;

  // This outlives `options`.
  void AddTo(ConfigFile& options);
  // After `options` is loaded: takes its words, and checks that everything fits the action.
  // INVALID_ARGUMENT: what is wrong, and what to write.
  absl::Status Check(const ConfigFile& options);
  // Of issue: a certificate that is to be made.
  struct Issued {
    Identity identity;
    std::string folder;
    absl::Duration lifetime;
  };
  // For an authority of `trust_domain`: one, or one for each role.
  std::vector<Issued> CertificatesIn(const std::string& trust_domain) const;
  // How long the new root of init and rotate is valid.
  absl::Duration RootLifetime() const;

 private:
  absl::Status CheckIssue() const;
  Issued CertificateOf(IdentityRole of, const std::string& trust_domain) const;

  std::vector<std::string> words_;
};

}  // namespace covey::cli
