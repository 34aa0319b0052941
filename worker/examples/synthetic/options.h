// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/contract/contract.h"
#include "common/runtime/config_file.h"
#include "common/tensor/wire_format.h"

namespace covey::synthetic {

// Command-line options; they must be the same for all workers of a run.
struct Options {
  // The model's number of tensors, 1 to 1000, and KiB per tensor, 1 to 262,144. More and smaller
  // tensors overlap better, and cost more messages.
  uint64_t tensors = 8;
  uint64_t tensor_kib = 1024;
  // Steps of each group, 1 to 10^9.
  uint64_t steps = 100;
  // Examples per step of a whole group, divided among its members; 1 to 10^6.
  uint64_t group_batch = 64;
  // Cost of an example on each worker; 0 to 60,000. A wait, not a computation: many workers fit on
  // few cores.
  double milliseconds_per_sample = 0.25;
  // Time to read an example on each worker, as from a slow store; 0 to 60,000. A wait before the
  // computation.
  double input_milliseconds_per_sample = 0;
  // Standard deviation of the logarithm of a step's time, 0 to 2; the mean is unaffected. Real
  // machines have about 0.08.
  double step_noise = 0;
  // A worker that takes `factor` times as long as others, from `first_step` on.
  struct Slow {
    uint32_t rank = 0;
    double factor = 1;
    uint64_t first_step = 1;
    friend bool operator==(const Slow&, const Slow&) = default;
  };
  std::vector<Slow> slow;
  // A worker that hangs once, for some time.
  struct Hang {
    uint32_t rank = 0;
    uint64_t step = 0;
    absl::Duration duration;
    friend bool operator==(const Hang&, const Hang&) = default;
  };
  std::vector<Hang> hangs;
  // Between the groups. Under local:H the optimizer is that of a group's own steps, and servers
  // take the mean of the groups' values once a round.
  Contract contract;
  WireFormat wire = WireFormat::kFloat32;
  // The wire format of values on their way back.
  WireFormat value_wire = WireFormat::kFloat32;
  // True: the group's members run the optimizer, each for its part, and servers only provide the
  // initial values; for one group under bsp.
  bool update_on_members = false;
  // 0 or 1. With 1, a step computes with the values of the step before last, which hides
  // communication behind a whole step's computation.
  uint32_t lag = 0;
  // KiB of the buckets in which small tensors travel together, 0 to 1,048,576
  // (worker/hybrid_options.h, FusionLimits). 0 = each tensor travels alone.
  uint64_t bucket_kib = 1024;
  // True: the group tries settings while it trains, and stays with the fastest
  // (worker/hybrid_options.h).
  bool autotune = false;
  // Rate of plain gradient descent, 1e-6 to 1. The loss is quadratic with curvature 1, so a rate of
  // 1 reaches the optimum in one step.
  double learning_rate = 0.1;
  // True: Adam, which keeps two more numbers per value.
  bool adam = false;
  // The distance between the workers' optima, 0 to 1000; their mean is the model's. With more than
  // 0 the result is correct only if every worker counts equally.
  double spread = 0;
  // Seed of the noise.
  uint64_t seed = 1;
  // Each worker appends one line per step to this file; empty = none.
  std::string step_trace;

  // INVALID_ARGUMENT: names the flag, its value and the range.
  absl::Status Validate() const;
  // Makes every field an option of a program; this outlives `options`.
  void AddTo(ConfigFile& options);
};

}  // namespace covey::synthetic
