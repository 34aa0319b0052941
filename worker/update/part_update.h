// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/collective/part_range.h"
#include "common/runtime/actor.h"
#include "worker/update/round_memory.h"

namespace covey::worker {

// One step of one bucket, for the member that is responsible for a part of it.
struct PartStep {
  // Always called once; may run inside the call.
  using Done = std::function<void(absl::Time, const absl::Status&, Outbox&)>;

  Step step;
  // Training examples behind the sum. 0: nothing is updated, and the sum does not count.
  uint64_t samples = 1;
  // What multiplies the learning rate of each piece of the bucket; empty = 1. Valid until `done`.
  std::span<const double> rate_factors;
  // The sum of the part over all members. Valid and unchanged until `done`. Empty for a fetch.
  std::span<const float> sum;
  // The memory that `sum` lies in; empty = unknown. The update may keep handles of it after `done`,
  // and `sum` stays unchanged until they are dropped. An update that keeps none drops this one
  // before `done`.
  Buffer sum_memory;
  // The values of the part: filled before `done` is called with OK.
  std::span<float> values;
  absl::Time deadline = absl::InfiniteFuture();
  Done done;

  double RateFactorOf(size_t piece) const { return rate_factors.empty() ? 1 : rate_factors[piece]; }
};

// Returns a callback for `count` >= 1 calls: the last call runs `done`, with the first error.
inline PartStep::Done AfterAll(size_t count, PartStep::Done done) {
  struct Rest {
    size_t unfinished = 0;
    absl::Status status;
    PartStep::Done done;
  };
  const auto rest = std::make_shared<Rest>();
  rest->unfinished = count;
  rest->done = std::move(done);
  return [rest](absl::Time now, const absl::Status& status, Outbox& outbox) {
    rest->status.Update(status);
    if (--rest->unfinished == 0) rest->done(now, rest->status, outbox);
  };
}

// The update of one member's part of one bucket between reduce-scatter and all-gather: from the sum
// of its gradients to its new values. The kinds differ in where the optimizer runs.
//
// One call at a time. When one fails, the group fails with its status, because a step cannot be
// half done. Actor-confined. Deterministic.
class PartUpdate {
 public:
  virtual ~PartUpdate() = default;

  virtual void Apply(absl::Time now, PartStep step, Outbox& outbox) = 0;
  // Gets the newest values, without a gradient; the first call of all. `step`: the reply must
  // include this step, as after a push of it; 0 = no condition.
  virtual void Fetch(absl::Time now, PartStep step, Outbox& outbox) = 0;
  // Called before the first call of all: continues from the members' memory of LOCAL rounds, of
  // which this update covers the part `part`.
  virtual void Resume(absl::Time, const RoundMemory&, const PartRange& /*part*/,
                      absl::Time /*deadline*/, Outbox&) {}
};

}  // namespace covey::worker
