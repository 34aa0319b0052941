#pragma once

#include <cstdint>
#include <map>

#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/observer.h"

namespace covey::sim {

// Invariant: one history of a shard (shard and generation) has one owner: every view says so, and
// nobody else answers for it. A shard's generation never goes back.
class OneOwner : public Observer {
 public:
  explicit OneOwner(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;

 private:
  Violations& violations_;
  uint64_t epoch_ = 0;
  std::map<ShardHistory, Address> owners_;
  std::map<ShardId, uint64_t> generations_;
};

}  // namespace covey::sim
