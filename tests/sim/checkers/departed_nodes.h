// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: a node id belongs to one incarnation forever. A node that died or left never returns:
// the scheduler accepts no further request of it. A group that broke or ended never becomes active
// again.
class DepartedNodes : public Observer {
 public:
  explicit DepartedNodes(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;

 private:
  struct NodeHistory {
    uint64_t incarnation = 0;
    bool departed = false;
  };

  Violations& violations_;
  uint64_t epoch_ = 0;
  std::map<uint64_t, NodeHistory> nodes_;
  std::map<uint32_t, bool> group_ended_;
};

}  // namespace covey::sim
