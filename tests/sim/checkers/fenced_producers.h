#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/observer.h"

namespace covey::sim {

// Invariant: a push of a dead incarnation of its producer is not accepted: once a shard has taken a
// push of a group's generation for good, it takes none of a lower one.
class FencedProducers : public Observer {
 public:
  explicit FencedProducers(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;

 private:
  Violations& violations_;
  std::map<std::pair<ShardHistory, uint64_t>, uint64_t> generations_;  // by shard and group
};

}  // namespace covey::sim
