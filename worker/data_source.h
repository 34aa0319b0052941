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

// Distributes the examples of a data set among all workers of the job. Each example is given out
// once per pass; the examples of a lost worker go to others. So workers may come, go and differ in
// speed, and every pass is still complete:
//
//   COVEY_ASSIGN_OR_RETURN(auto source, DataSource::Open(*worker, {.name = "digits", ...}));
//   for (;;) {
//     COVEY_ASSIGN_OR_RETURN(const auto samples, hybrid->SamplesFor(group_batch));
//     COVEY_ASSIGN_OR_RETURN(const auto batch, source->Take(samples));  // may be empty
//     if (source->done()) {
//       COVEY_ASSIGN_OR_RETURN(const bool over, source->MeetAtEnd(*hybrid));
//       if (over) break;
//     }
//     ... a step of `batch.size()` samples, as in hybrid_step.h;
//     after all Waits of its forward pass:
//     source->Finish(1);  // all batches are trained, except this one
//   }
//
// Items are requested ahead of time, so that a step does not wait for the scheduler. A member
// without examples, while other members may have some, still takes part in the steps, because
// groups are synchronous. No member stops by itself: members learn of `done` at different times,
// and MeetAtEnd finds the step that is the last one for all.
//
// Exactly-once delivery holds for reported examples. A worker that dies in the few milliseconds
// after its step was applied and before its report has arrived leaves examples that are trained a
// second time. For a scheduler that restarts see scheduler/work/data_dispatcher.h.
//
// Thread-safety: one thread, that of the worker, which outlives this. The destructor reports the
// trained examples, returns the rest, and waits for that up to two seconds.
class DataSource {
 public:
  struct Options {
    // The name of the data set; unique in the job for each run over it.
    std::string name;
    // The same on all workers: the number of examples, at most 2^32; examples per item; passes; and
    // the seed of the order in each pass, 0 = the data set's own order.
    uint64_t examples = 0;
    uint64_t item_examples = 1;
    uint64_t passes = 1;
    uint64_t seed = 0;
  };

  // INVALID_ARGUMENT: options are invalid, or differ from those of other workers.
  static absl::StatusOr<std::unique_ptr<DataSource>> Open(Worker& worker, const Options& options);
  ~DataSource();
  DataSource(const DataSource&) = delete;
  DataSource& operator=(const DataSource&) = delete;

  // The next examples of this worker, by their position in the data set: `samples`, or fewer when
  // fewer are available. When none is, it waits briefly for some. Valid until the next call.
  // ABORTED: this worker is no longer a member.
  absl::StatusOr<std::span<const uint32_t>> Take(uint64_t samples);
  // Marks all batches that Take returned as trained, except the newest `under_way`.
  void Finish(size_t under_way);

  // All passes are finished, on all workers together.
  bool done() const;
  // Finished examples of all passes so far, according to the scheduler's newest reply.
  uint64_t examples_finished() const;

  // Call it once `done`, instead of the next step. True: all members of the group have called it
  // after the same step, and no step follows. False: some have not called it within a short time;
  // then make one more step, without samples, because they may be in it. Errors as
  // HybridStep::Finish, Group::Refresh and Worker::Barrier.
  absl::StatusOr<bool> MeetAtEnd(HybridStep& hybrid);

 private:
  struct State;

  DataSource(Worker& worker, const Options& options);
  // Starts the requests that are due. Runs on this thread or the loop's.
  static void Ask(const std::shared_ptr<State>& state);
  const std::vector<uint32_t>& OrderOf(uint64_t pass);

  Worker& worker_;
  const Options options_;
  const std::shared_ptr<State> state_;
  std::map<uint64_t, std::vector<uint32_t>> orders_;  // of passes in progress
  std::vector<uint32_t> batch_;
};

}  // namespace covey::worker
