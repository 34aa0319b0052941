// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/config.h"
#include "worker/worker.h"

namespace covey::synthetic {

// What one worker has to say about a run.
struct Figures {
  uint32_t group = 0;
  uint64_t steps = 0;
  uint64_t samples = 0;
  // From its first step to the end of its last one.
  double seconds = 0;
  // Of these, its own work.
  double compute_seconds = 0;
};

// Workers of higher rank train, and are not told of.
inline constexpr size_t kTellingRanksMax = 256;

// How a worker waits for others.
struct Patience {
  std::function<absl::Time()> now;
  // Lets time pass; ends the wait with its error.
  std::function<absl::Status(absl::Duration)> pause;
  absl::Duration max;
};

// Returns when all workers that are left have called it: whoever dies is not waited for, whoever
// comes late is. DEADLINE_EXCEEDED: names who is missing. Errors besides: those of Worker::Barrier
// that do not pass, and of `pause`.
absl::Status MeetAtEnd(worker::Worker& worker, const Patience& patience);

// The figures of all workers, by rank, for the first of those that have any; empty for the others.
// All workers call it, when they have trained; it blocks until the last one has. The figures travel
// by a table, so that no worker depends on another one; of those that have died meanwhile they are
// zeros. Errors: those of MeetAtEnd and client.
absl::StatusOr<std::vector<Figures>> GatherFigures(worker::Worker& worker,
                                                   const worker::WorkerConfig& config,
                                                   const Figures& own, const Patience& patience);

}  // namespace covey::synthetic
