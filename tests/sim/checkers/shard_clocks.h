#pragma once

#include <cstdint>
#include <map>

#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/observer.h"

namespace covey::sim {

// Invariant: within one history of a shard, version, samples and every group's clock never go back.
class ShardClocks : public Observer {
 public:
  explicit ShardClocks(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;

 private:
  struct State {
    uint64_t version = 0;
    uint64_t samples = 0;
    std::map<uint32_t, uint64_t> clocks;
  };

  Violations& violations_;
  std::map<ShardHistory, State> states_;
};

}  // namespace covey::sim
