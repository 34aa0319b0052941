// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: a node is declared dead because its host refuses a connection only after the scheduler
// has heard no heartbeat of it for the time between two tries to connect. Until then whoever has
// refused, like a proxy, may have been wrong.
class DeathEvidence : public Observer {
 public:
  explicit DeathEvidence(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;
  void OnReceive(absl::Time now, absl::string_view receiver, const Message& message) override;

 private:
  using Process = std::pair<uint64_t, uint64_t>;  // node and incarnation

  Violations& violations_;
  std::map<Process, absl::Time> heard_;  // when its last heartbeat came
  std::set<Process> refused_;            // when nothing had been heard for long enough
};

}  // namespace covey::sim
