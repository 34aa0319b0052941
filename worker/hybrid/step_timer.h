// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "worker/hybrid/progress_meter.h"
#include "worker/hybrid/server_times.h"

namespace covey::worker {

// Divides the time of a program between two reports into waiting for servers, waiting for the group
// (server_times.h says which is which), input, and computation: the rest. Waiting during input
// counts as waiting.
//
// Confined to the program's thread; the loop writes server_times() before a request is done.
class StepTimer {
 public:
  explicit StepTimer(size_t tensors) : server_times_(tensors) {}

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
    absl::Duration waited;  // until then, in this report
  };

  std::vector<ServerTimes> server_times_;
  absl::Time taken_ = absl::InfinitePast();
  StepReport times_;  // since then
  std::optional<Input> input_under_way_;
};

}  // namespace covey::worker
