// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/simulation/simulator.h"
#include "common/store/testing/memory_folder.h"

namespace covey::sim {

// How long a simulated disk takes, and how it fails until it is healed: I/O errors, short writes,
// for a while no room, and for a while slowness.
//
// Actor-confined. Deterministic in the random stream.
class DiskFaults {
 public:
  struct Options {
    // The longest time that one operation takes, and the factor on it while the disk is slow.
    absl::Duration delay_max = absl::Milliseconds(5);
    double slowness = 100;
    // Probability that an operation meets a fault.
    double chance = 0;
  };
  // `name`: of the disk, in the names of counted events. `random` outlives it.
  DiskFaults(Simulator& simulator, std::string name, const Options& options, Random& random)
      : simulator_(simulator), name_(std::move(name)), options_(options), random_(random) {}

  absl::Duration DrawDelay();
  // Plans what the next operation meets, which makes a few system calls in `folder`. `writes`: it
  // needs room.
  void Plan(MemoryFolder& folder, bool writes);
  void Heal() { healed_ = true; }
  bool healed() const { return healed_; }

 private:
  Simulator& simulator_;
  const std::string name_;
  const Options options_;
  Random& random_;
  absl::Time full_until_ = absl::InfinitePast();
  absl::Time slow_until_ = absl::InfinitePast();
  bool healed_ = false;
};

}  // namespace covey::sim
