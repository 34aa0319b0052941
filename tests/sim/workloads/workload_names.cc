// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/workload_names.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace covey::sim {

absl::string_view ContractKindOf(absl::string_view name) {
  return absl::ConsumePrefix(&name, absl::StrCat(kStaleness, ":")) ? name : "";
}

bool IsWorkload(absl::string_view name) {
  const absl::string_view kind = ContractKindOf(name);
  if (kind.empty()) {
    return std::count(std::begin(kWorkloads), std::end(kWorkloads), name) > 0;
  }
  return std::count(std::begin(kContractKinds), std::end(kContractKinds), kind) > 0;
}

}  // namespace covey::sim
