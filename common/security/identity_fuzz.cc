// SPDX-License-Identifier: Apache-2.0
// Identities in certificates.
#include "common/security/identity.h"

#include <string>

#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  return {
      UriOf({.trust_domain = "example.org",
             .job = "mnist",
             .role = IdentityRole::kWorker,
             .rank = 3}),
      UriOf({.trust_domain = "a", .job = "a.b-C_9", .role = IdentityRole::kServer, .rank = {}}),
      UriOf({.trust_domain = "b.c", .job = {}, .role = IdentityRole::kAdmin, .rank = {}}),
  };
}

bool FuzzOne(std::span<const uint8_t> input) {
  const auto identity = ParseIdentity(FuzzText(input));
  if (!identity.ok()) {
    COVEY_CHECK(identity.status().code() == absl::StatusCode::kInvalidArgument);
    return false;
  }
  // An identity has one URI.
  COVEY_CHECK(CheckIdentity(*identity).ok());
  COVEY_CHECK(UriOf(*identity) == FuzzText(input));
  return true;
}

}  // namespace covey
