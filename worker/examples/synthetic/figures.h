#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "worker/config.h"
#include "worker/group.h"

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

// At which all workers meet when they have trained.
inline constexpr char kFiguresBarrier[] = "synthetic/figures";

// The figures of all workers, by rank, for the worker of rank 0; empty for the others. All workers
// call it, when they have trained; it blocks until the last one has, at most for `patience`. Within
// groups the figures travel by a collective, between them by a table. Errors: those of worker and
// client.
absl::StatusOr<std::vector<Figures>> GatherFigures(worker::Worker& worker,
                                                   const worker::WorkerConfig& config,
                                                   const Figures& own, absl::Duration patience);

}  // namespace covey::synthetic
