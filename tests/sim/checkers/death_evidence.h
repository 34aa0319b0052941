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

// Invariant: a node is declared dead because its host refuses a connection only after it has sent
// no heartbeat for the time between two tries to connect. Until then whoever has refused, like a
// proxy, may have been wrong. Heartbeats may still be under way when it dies.
class DeathEvidence : public Observer {
 public:
  explicit DeathEvidence(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;
  void OnReceive(absl::Time now, absl::string_view receiver, const Message& message) override;

 private:
  using Process = std::pair<uint64_t, uint64_t>;  // node and incarnation

  Violations& violations_;
  std::map<Process, absl::Time> beats_;  // when it sent the last one
  std::set<Process> refused_;            // when it had sent none for long enough
};

}  // namespace covey::sim
