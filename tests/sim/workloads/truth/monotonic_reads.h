// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"

namespace covey::sim {

// Invariant: the values that a reader gets from one history of a shard never go back.
//
// Actor-confined.
class MonotonicReads {
 public:
  explicit MonotonicReads(Violations& violations) : violations_(violations) {}

  // `reply`: with values, read from `message`, which is about to be given to `receiver`.
  void OnReceive(absl::string_view receiver, const Message& message, const ShardReply& reply);

 private:
  struct LastRead {
    uint64_t request = 0;
    uint64_t generation = 0;
    std::vector<float> values;
    uint64_t version = 0;
  };

  Violations& violations_;
  std::map<std::pair<uint64_t, ShardId>, LastRead> last_read_;  // by node
};

}  // namespace covey::sim
