// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: a server answers a push or pull only in the history of the shard that the request
// names. A sender that does not know yet that a shard was lost is refused, never served.
class AskedHistory : public Observer {
 public:
  explicit AskedHistory(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;

 private:
  Violations& violations_;
  // Generations named by the attempts of a request, by (node, request id).
  std::map<std::pair<uint64_t, uint64_t>, std::set<uint64_t>> asked_;
};

}  // namespace covey::sim
