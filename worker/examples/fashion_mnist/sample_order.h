// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace covey::fashion_mnist {

// The samples that one worker trains on, step by step. Every epoch visits every sample exactly once
// over all workers, in an order that depends only on the seed and the epoch.
//
// Step t of an epoch takes the next `batch_size` * `world_size` samples of the shuffled order and
// gives each worker a contiguous share. The last step takes the rest, in shares that differ by at
// most one sample and may be empty. So all workers make the same number of steps, as a group that
// synchronizes every step requires.
//
//   shuffled order:  | rank 0 | rank 1 | rank 2 | rank 0 | rank 1 | rank 2 | 0 | 1 | 2 |
//                    '--------- step 0 ---------'--------- step 1 ---------'- step 2 --'
//
// Thread-safety: actor-confined. Determinism: pure. Limits: at most 2^32 samples.
class SampleOrder {
 public:
  struct Options {
    size_t sample_count = 0;
    size_t batch_size = 0;  // Per worker.
    size_t rank = 0;        // Of this worker among all workers of all groups.
    size_t world_size = 0;
    uint64_t seed = 0;  // The same on every worker.
  };

  // All but `rank` must be positive, and `rank` below `world_size`. Starts with epoch 0.
  explicit SampleOrder(const Options& options);

  // Shuffles for `epoch`; epochs may be started in any order. O(sample_count).
  void StartEpoch(uint64_t epoch);

  size_t steps_per_epoch() const;

  // The samples of this worker at `step` < steps_per_epoch() of the epoch started last. Valid until
  // the next StartEpoch().
  std::span<const uint32_t> Batch(size_t step) const;

 private:
  // Constant after construction.
  const Options options_;

  // All samples, in the order of the epoch.
  std::vector<uint32_t> order_;
};

}  // namespace covey::fashion_mnist
