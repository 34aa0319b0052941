// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/collective/plan.h"
#include "common/runtime/actor.h"
#include "worker/update/round_memory.h"

namespace covey::worker {

// One step of one bucket, as the member that answers for a part of it sees it.
struct PartStep {
  // Called once, always; may run inside the call.
  using Done = std::function<void(absl::Time, const absl::Status&, Outbox&)>;

  Step step;
  // Training examples behind the sum; at least 1.
  uint64_t samples = 1;
  // Of the part: the sum over all members. Valid and unchanged until `done`. A fetch has none.
  std::span<const float> sum;
  // Of the part: filled before `done`, with OK.
  std::span<float> values;
  absl::Time deadline = absl::InfiniteFuture();
  Done done;
};

// To be called `count` >= 1 times: the last call calls `done`, with the first error.
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

// What happens to one member's part of one bucket between reduce-scatter and all-gather: from the
// sum of its gradients to its new values. Where the optimizer runs is what the kinds differ in.
//
// One call at a time. When one fails, the group fails with its status, for half a step is no step.
// Actor-confined. Deterministic.
class PartUpdate {
 public:
  virtual ~PartUpdate() = default;

  virtual void Apply(absl::Time now, PartStep step, Outbox& outbox) = 0;
  // The newest values, without a gradient; the first call of all. `step`: what the answer must
  // hold, as after a push of it; 0 = nothing.
  virtual void Fetch(absl::Time now, PartStep step, Outbox& outbox) = 0;
  // Before the first call of all: goes on from what the members know of LOCAL rounds, of which this
  // is the part `part`.
  virtual void Resume(absl::Time, const RoundMemory&, const PartRange& /*part*/,
                      absl::Time /*deadline*/, Outbox&) {}
};

}  // namespace covey::worker
