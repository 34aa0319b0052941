// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/simulation/simulator.h"

namespace covey::sim {

// A process's own disk: outlives the process. Appended bytes become durable later, in order. A
// crash loses the bytes that are not durable, except that a torn piece of them may remain.
//
// Actor-confined. Deterministic in the simulator's seed.
class SimDisk {
 public:
  // `delay_max`: the longest time that one append takes.
  SimDisk(Simulator& simulator, uint64_t which, absl::Duration delay_max)
      : simulator_(simulator),
        random_(simulator.Draws(Simulator::Stream::kDisk, which)),
        delay_max_(delay_max) {}

  // `done` runs when the bytes are durable, unless the process has crashed by then.
  void Append(std::string bytes, std::function<void()> done);
  void Crash();

  // The bytes that a restarted process reads.
  const std::string& content() const { return content_; }
  // Keeps the first `size` bytes, as a restarted process does to cut off a torn tail.
  void Truncate(size_t size) { content_.resize(size); }

 private:
  struct Pending {
    std::string bytes;
    std::function<void()> done;
  };

  Simulator& simulator_;
  Random random_;
  const absl::Duration delay_max_;
  uint64_t life_ = 0;
  absl::Time last_ = absl::InfinitePast();
  std::deque<Pending> pending_;
  std::string content_;
};

}  // namespace covey::sim
