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

// The figures of one worker about a run.
struct Figures {
  uint32_t group = 0;
  uint64_t steps = 0;
  uint64_t samples = 0;
  // From its first step to the end of its last one.
  double seconds = 0;
  // The part of `seconds` that was its own work.
  double compute_seconds = 0;
};

// Workers of higher rank train, but do not report figures.
inline constexpr size_t kTellingRanksMax = 256;

// The parameters of a wait for other workers.
struct Patience {
  std::function<absl::Time()> now;
  // Lets time pass; ends the wait with its error.
  std::function<absl::Status(absl::Duration)> pause;
  absl::Duration max;
};

// Returns when all remaining workers have called it: workers that die are not waited for, late ones
// are. DEADLINE_EXCEEDED: names the missing workers. Further errors: permanent ones of
// Worker::Barrier, and those of `pause`.
absl::Status MeetAtEnd(worker::Worker& worker, const Patience& patience);

// Returns the figures of all workers, by rank, on the first worker that has any; empty on the
// others. All workers call it after training; it blocks until the last one has. The figures travel
// through a table, so that no worker depends on another one; the figures of workers that have died
// are zeros. Errors: those of MeetAtEnd and client.
absl::StatusOr<std::vector<Figures>> GatherFigures(worker::Worker& worker,
                                                   const worker::WorkerConfig& config,
                                                   const Figures& own, const Patience& patience);

}  // namespace covey::synthetic
