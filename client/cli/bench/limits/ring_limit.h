// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/bench/limits/limit_load.h"
#include "client/cli/bench/limits/partner.h"
#include "client/cli/bench/measure/turns.h"

namespace covey::cli {

struct RingMemory;

// The speed of memory that two processes share: this one copies cold memory into a ring, the
// partner adds it out of the ring to a table of the operation's size. Both spin during a turn. No
// checks. Confined to one thread.
class RingLimit {
 public:
  static absl::StatusOr<std::unique_ptr<RingLimit>> Start(const LimitLoad& load);
  ~RingLimit();
  RingLimit(const RingLimit&) = delete;
  RingLimit& operator=(const RingLimit&) = delete;

  // One turn; GB/s.
  absl::StatusOr<Sample> Transfer();

 private:
  explicit RingLimit(const LimitLoad& load) : load_(load) {}

  const LimitLoad load_;
  int descriptor_ = -1;
  RingMemory* ring_ = nullptr;
  std::vector<LaneMemory> lanes_;
  std::unique_ptr<Partner> partner_;
};

// The partner: maps the ring at `path` and adds what it holds to a table of `bytes`.
absl::Status ServeRingLimit(const std::string& path, uint64_t bytes);

}  // namespace covey::cli
