// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/hybrid_step.h"
#include "worker/worker.h"

namespace covey::worker {

// Which examples this worker trains, out of a data set that all workers of the job share. Each
// example is given out once per pass; what a lost worker had goes to others. So workers may come,
// go and be of different speed, and every pass is still complete:
//
//   COVEY_ASSIGN_OR_RETURN(auto source, DataSource::Open(*worker, {.name = "digits", ...}));
//   for (;;) {
//     COVEY_ASSIGN_OR_RETURN(const auto samples, hybrid->SamplesFor(group_batch));
//     COVEY_ASSIGN_OR_RETURN(const auto batch, source->Take(samples));  // may be empty
//     if (source->done()) {
//       COVEY_ASSIGN_OR_RETURN(const bool over, source->MeetAtEnd(*hybrid));
//       if (over) break;
//     }
//     ... a step of `batch.size()` samples, as in hybrid_step.h, or of one with a gradient of zero;
//     after all Waits of its forward pass:
//     source->Finish(1);  // all batches are trained, but this one
//   }
//
// Items are asked for ahead of time, so that a step does not wait for the scheduler. A member that
// has no examples left, while others may have, takes part in the steps all the same: groups are
// synchronous. Nobody stops by itself: `done` is learned by each member at another moment, and
// MeetAtEnd finds the step that is the last one for all.
//
// Exactly once holds for what is reported. A worker that dies after its step was applied and before
// its report has arrived, a few milliseconds, leaves examples that are trained once more; with a
// scheduler that restarts see scheduler/work/data_dispatcher.h.
//
// Thread-safety: one thread, that of the worker, which outlives this. Destruction reports what is
// trained, gives back the rest, and waits for that up to two seconds.
class DataSource {
 public:
  struct Options {
    // Of the data set; unique in the job for each run over it.
    std::string name;
    // The same on all workers: examples, at most 2^32; how many make an item; passes; and of which
    // seed their order is in each pass, 0 = that of the data set.
    uint64_t examples = 0;
    uint64_t item_examples = 1;
    uint64_t passes = 1;
    uint64_t seed = 0;
  };

  // INVALID_ARGUMENT: options make no sense, or others say something else of the data set.
  static absl::StatusOr<std::unique_ptr<DataSource>> Open(Worker& worker, const Options& options);
  ~DataSource();
  DataSource(const DataSource&) = delete;
  DataSource& operator=(const DataSource&) = delete;

  // The next examples of this worker, by their place in the data set: `samples`, or fewer when
  // fewer are there. Waits for some a short while when none is. Valid until the next call. ABORTED:
  // this worker is no member any more.
  absl::StatusOr<std::span<const uint32_t>> Take(uint64_t samples);
  // All batches that Take returned are trained, but the newest `under_way`.
  void Finish(size_t under_way);

  // All passes are finished, by whomever.
  bool done() const;
  // Finished examples of all passes so far, as far as the scheduler has told.
  uint64_t examples_finished() const;

  // Once `done`, instead of the next step: true when all members of the group are here, having
  // begun the same step last; no step comes after it. False when some are not within a moment: then
  // make one more step, without samples, for they may be in it. Errors as HybridStep::Finish,
  // Group::Refresh and Worker::Barrier.
  absl::StatusOr<bool> MeetAtEnd(HybridStep& hybrid);

 private:
  struct State;

  DataSource(Worker& worker, const Options& options);
  // Starts the requests that are due. On this thread or the loop's.
  static void Ask(const std::shared_ptr<State>& state);
  const std::vector<uint32_t>& OrderOf(uint64_t pass);

  Worker& worker_;
  const Options options_;
  const std::shared_ptr<State> state_;
  std::map<uint64_t, std::vector<uint32_t>> orders_;  // of passes that are under way
  std::vector<uint32_t> batch_;
};

}  // namespace covey::worker
