// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: once all faults are over, a push is answered within a bound, by whichever server.
// Where one server alone held the shard, its lease may have to end first. A push that asks for
// values is not among them, because its reply may wait for other groups.
class AnsweredPushes : public Observer {
 public:
  // `healed_at`: when the last fault ended; infinite before.
  struct Bounds {
    absl::Duration within;
    absl::Duration lease;
  };
  AnsweredPushes(const Bounds& bounds, std::function<absl::Time()> healed_at,
                 Violations& violations)
      : bounds_(bounds), healed_at_(std::move(healed_at)), violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;

 private:
  // Node and request id.
  using RequestKey = std::pair<uint64_t, uint64_t>;
  struct Push {
    absl::Time since;
    bool is_answered = false;
  };

  void NoteView(const proto::ClusterView& view);
  // How long the push has waited, without the time before the last fault ended.
  absl::Duration WaitOf(absl::Time now, const Push& push) const {
    return now - std::max(push.since, healed_at_());
  }

  const Bounds bounds_;
  const std::function<absl::Time()> healed_at_;
  Violations& violations_;
  std::map<RequestKey, Push> pushes_;
  std::set<ShardId> alone_;  // shards that one server alone has held
};

}  // namespace covey::sim
