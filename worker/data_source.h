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
#include "absl/time/time.h"
#include "worker/hybrid_step.h"
#include "worker/worker.h"

namespace covey::proto {
class WorkRequest;
}  // namespace covey::proto

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
// A program with a loop over passes meets at the end of each one (AtPassEnd::kMeet). `done` and
// MeetAtEnd are then about the present pass, and NextPass goes on:
//
//   do {
//     for (;;) { ... as above, until MeetAtEnd says that it is over }
//     ... evaluate, save, change the learning rate;
//     COVEY_ASSIGN_OR_RETURN(const bool goes_on, source->NextPass());
//   } while (goes_on);
//
// Items are requested ahead of time, so that a step does not wait for the scheduler. A member
// without examples, while other members may have some, still takes part in the steps, because
// groups are synchronous. No member stops by itself: members learn of `done` at different times,
// and MeetAtEnd finds the step that is the last one for all.
//
// At the end of a pass a slow worker returns the examples that Take has not returned, as soon as
// others have none left; also while its program trains. So it delays the end of the pass by about
// one of its steps; see scheduler/work/recalls.h.
//
// Exactly-once delivery holds for reported examples. Reports follow each other every half second,
// because the scheduler answers each when it is in its log. So a worker that dies leaves examples
// that are trained a second time: those of its steps in the last half second, or of its last step
// if that is longer. For a scheduler that restarts see scheduler/work/data_dispatcher.h.
//
// Thread-safety: one thread, that of the worker, which outlives this. The destructor reports the
// trained examples, returns the rest, and waits for that up to two seconds.
class DataSource {
 public:
  enum class AtPassEnd {
    // A pass follows the one before without a break. `done` means all passes.
    kGoOn,
    // No member of a group gets examples of a pass before all members have met at the end of the
    // one before, after the same step. `done` means the present pass.
    kMeet,
  };
  struct Options {
    // The name of the data set; unique in the job for each run over it.
    std::string name;
    // The same on all workers: the number of examples, at most 2^32; examples per item; passes; and
    // the seed of the order in each pass, 0 = the data set's own order.
    uint64_t examples = 0;
    uint64_t item_examples = 1;
    uint64_t passes = 1;
    uint64_t seed = 0;
    // The same on all members of a group.
    AtPassEnd at_pass_end = AtPassEnd::kGoOn;
  };

  // With kMeet the source begins in the pass in which its group is, or else in the first one that
  // the job has not finished. INVALID_ARGUMENT: options are invalid, or differ from those of other
  // workers. With kMeet also DEADLINE_EXCEEDED or UNAVAILABLE: the scheduler is away, or has
  // restarted and does not know the group's pass, for operation_deadline.
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

  // All passes are finished, on all workers together; with kMeet the present one is.
  bool done() const;
  // With kMeet: the present pass, from 0; Options.passes = all are over. A member that joined while
  // its group went on to the next pass follows it, before its first examples. With kGoOn: 0.
  uint64_t pass() const;
  // Finished examples of all passes so far, according to the scheduler's newest reply.
  uint64_t examples_finished() const;

  // Call it once `done`, instead of the next step. True: all members of the group have called it
  // after the same step, and no step of this pass follows. False: some have not called it within a
  // short time; then make one more step, without samples, because they may be in it. With kMeet
  // also true when other members are in a later pass already: then they met, and this member did
  // not get the reply, because the scheduler restarted, or it came from another group. Errors as
  // HybridStep::Finish, Group::Refresh and Worker::Barrier.
  absl::StatusOr<bool> MeetAtEnd(HybridStep& hybrid);
  // With kMeet, after MeetAtEnd has returned true: goes on to the next pass. False: that was the
  // last one, as always with kGoOn. Blocks until the scheduler knows, so that a member that joins
  // in the next step learns of the pass. INVALID_ARGUMENT: the present pass is not over; errors as
  // Worker::Barrier.
  absl::StatusOr<bool> NextPass();

 private:
  struct State;

  DataSource(Worker& worker, const Options& options);
  // Starts the requests that are due. Runs on this thread or the loop's.
  static void Ask(const std::shared_ptr<State>& state);
  // Sends the request, and takes in the reply. Blocks, at most for `timeout`.
  absl::Status Tell(const proto::WorkRequest& request, absl::Duration timeout);
  const std::vector<uint32_t>& OrderOf(uint64_t pass);

  Worker& worker_;
  const Options options_;
  const std::shared_ptr<State> state_;
  std::map<uint64_t, std::vector<uint32_t>> orders_;  // of passes in progress
  std::vector<uint32_t> batch_;
  bool is_over_ = false;  // MeetAtEnd has returned true, for this pass
};

}  // namespace covey::worker
