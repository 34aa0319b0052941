// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "proto/table.pb.h"

namespace covey::sim {

// A wild push adds this to its slot in place of 1.
inline constexpr float kWild = 1 << 30;
// Whether the push of this slot is wild, where the table has a gate. The first ones are not, so
// that the shards learn what is usual.
constexpr bool IsWildSlot(uint64_t slot) { return slot >= 60 && slot % 8 == 3; }

// Configuration of a run of the workload "counting". A value.
struct CountingPlan {
  // Fillers that the auditor pushes to empty the servers' buffers.
  static constexpr uint64_t kFillersMax = 64;

  uint32_t clients = 1;
  uint32_t shards = 1;
  uint64_t pushes = 1;    // of all clients together
  uint64_t arrivals = 1;  // per update
  uint32_t replicas = 0;  // of each shard; 0 = the default
  proto::Contract::Kind contract = proto::Contract::ASYNC;
  double haste = 1;
  absl::Duration deadline_max;
  // The table is sparse, and slots are columns (counting_rows.h); its scheduler chooses the number
  // of shards.
  bool sparse = false;
  // The table is one of vectors, pushes are functions, and slots are bits (counting_functions.h).
  bool functions = false;
  // The table has a norm gate, and some pushes are wild.
  bool gated = false;
  // The optimizer has a slot (counting_momentum.h).
  bool momentum = false;
  // Which rows of a sparse table are made, and which go.
  proto::SparseRows life_cycle;
  // Of a sparse table. Values are 0, 1, and 1.5, 2 or 3 where an update had fewer pushes, all of
  // which every type has.
  proto::DataType row_type = proto::FLOAT32;

  // Whether a row may be made later than by the first push that holds its key.
  bool admits_late() const {
    return life_cycle.admit_after() > 1 || life_cycle.admit_probability() > 0;
  }

  // Elements of each shard. Has room for the auditor's fillers, which it may have to push again.
  uint64_t slots() const { return (pushes + kFillersMax + 15) / 16 * 16; }
  proto::TableSpec Spec() const;
  // The gradient of the push that owns `slot`, for `count` shards.
  std::vector<float> Gradient(uint64_t slot, uint32_t count) const;
};

CountingPlan DrawCountingPlan(Random random);
// In half of the draws all rows are made at once, and stay.
proto::SparseRows DrawLifeCycle(Random random);
// In half of the draws float32.
proto::DataType DrawRowType(Random random);
// One line.
std::string Describe(const CountingPlan& plan);

}  // namespace covey::sim
