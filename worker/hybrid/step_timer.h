// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "worker/hybrid/away_clock.h"
#include "worker/hybrid/progress_meter.h"
#include "worker/hybrid/server_times.h"

namespace covey::worker {

// Divides the time of a program between two reports into waiting for servers, waiting for the group
// (server_times.h says which is which), input, and computation: the rest. Waiting during input
// counts as waiting. Time that the program is away is in none of them: it says nothing of its pace.
//
// Confined to the program's thread; the loop writes server_times() before a request is done. `away`
// outlives it.
class StepTimer {
 public:
  StepTimer(size_t tensors, const AwayClock& away) : server_times_(tensors), away_(away) {}

  // The memory for TensorRequest::server_times.
  ServerTimes& server_times(size_t tensor) { return server_times_[tensor]; }
  // The program has waited for the tensor. Its request is done.
  void Waited(size_t tensor, absl::Time from, absl::Time to);
  // The program reads and prepares samples between these calls.
  void BeginInput(absl::Time now);
  void EndInput(absl::Time now);

  // The times since the last call; the first call gives times without end. The caller fills in the
  // rest of the report.
  StepReport Take(absl::Time now);

 private:
  struct Input {
    absl::Time since;
    // Until then, in this report.
    absl::Duration waited;
    // Until then, in all.
    absl::Duration away;
  };

  std::vector<ServerTimes> server_times_;
  const AwayClock& away_;
  absl::Time taken_ = absl::InfinitePast();
  absl::Duration away_taken_ = absl::ZeroDuration();  // until then, in all
  StepReport times_;                                  // since then
  std::optional<Input> input_under_way_;
};

}  // namespace covey::worker
