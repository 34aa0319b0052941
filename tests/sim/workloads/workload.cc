// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/workload.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"

namespace covey::sim {
namespace {

// "bsp" of "staleness:bsp"; empty when the name has no kind.
absl::string_view KindOf(absl::string_view name) {
  return absl::ConsumePrefix(&name, absl::StrCat(kStaleness, ":")) ? name : "";
}

}  // namespace

bool IsWorkload(absl::string_view name) {
  const absl::string_view kind = KindOf(name);
  if (kind.empty()) {
    return std::count(std::begin(kWorkloads), std::end(kWorkloads), name) > 0;
  }
  return std::count(std::begin(kContractKinds), std::end(kContractKinds), kind) > 0;
}

std::unique_ptr<Workload> MakeWorkload(absl::string_view name, Random random,
                                       Violations& violations) {
  COVEY_CHECK(IsWorkload(name));
  if (name == kCounting) return MakeCountingWorkload(random, violations);
  if (name == kGroups) return MakeGroupsWorkload(random, violations);
  if (name == kWork) return MakeWorkWorkload(random, violations);
  return MakeStalenessWorkload(random, KindOf(name), violations);
}

}  // namespace covey::sim
