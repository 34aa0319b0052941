// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/runtime/actor.h"
#include "worker/hybrid/server_times.h"

namespace covey::worker {

// What a program asks for one tensor: a step, a pull or a flush. The memory that it refers to
// belongs to the engine until `done` is called.
struct TensorRequest {
  size_t tensor = 0;
  // Mean over this member's samples; unchanged by the engine. Ignored by pulls and flushes.
  std::span<const float> gradient;
  // Where the new values go.
  std::span<float> values;
  // Examples behind the gradient. With 0 the gradient does not count. A step in which no member has
  // samples changes no value.
  uint64_t samples = 0;
  // Multiplies the learning rate of the table's schedule. That of a member's last request holds
  // until its next one.
  double rate_factor = 1;
  absl::Time deadline = absl::InfiniteFuture();
  // If it is not null, written before `done` is called with the values of a step or a pull: when
  // the tensor's bucket waited for servers.
  ServerTimes* server_times = nullptr;
  // If it is not null, written before `done` is called for a submission: the group's number of the
  // step that it was for.
  Step* step = nullptr;
  // If it is not null and the program updates, written before `done` is called with a mean
  // gradient: the examples of all members behind it. 0: there were none, and the mean is zero.
  uint64_t* mean_samples = nullptr;
  // Called once, always. The call may run inside the one that starts the request.
  std::function<void(absl::Time, const absl::Status&, Outbox&)> done;
};

}  // namespace covey::worker
