// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: the epoch of published views never goes back, over restarts of the scheduler too, and
// two views of one epoch are the same view.
class ViewHistory : public Observer {
 public:
  explicit ViewHistory(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;

 private:
  Violations& violations_;
  uint64_t newest_epoch_ = 0;
  std::string newest_view_;
};

}  // namespace covey::sim
