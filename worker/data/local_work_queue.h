// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "proto/scheduler.pb.h"
#include "worker/data/step_numbers.h"

namespace covey::worker {

// The items of one worker: waiting, in batches that are being trained, and trained but not yet
// reported.
//
//   Add ─▶ waiting ── Take ─▶ batch ── Finish ─▶ to report ── TakeReport ─▶
//             └── TakeWaiting ─▶ to others
//
// A batch is trained in the step that the program begins next. A trained piece carries the group's
// number of that step, 0 when it is not known, so only pieces of one step are merged. Steps that
// are faster than reports would make these longer and longer. Beyond kPiecesMax, pieces of several
// steps are merged, too; they carry 0.
//
// Used by DataSource. Not thread-safe; pure, time is an argument.
class LocalWorkQueue {
 public:
  // About 0.5 s, the interval of reports, of steps that take 0.6 ms.
  static constexpr size_t kPiecesMax = 768;
  // How often steps without examples are reported.
  static constexpr absl::Duration kStepReportInterval = absl::Seconds(1);

  void Add(const proto::WorkItem& item);

  // The next `examples`, or fewer when fewer are waiting, as one batch; pieces in the order of
  // their arrival. An empty batch counts as one, too.
  std::vector<proto::WorkItem> Take(absl::Time now, uint64_t examples, const StepNumbers& steps);
  // Marks all batches as trained, except the newest `under_way`.
  void Finish(size_t under_way, const StepNumbers& steps);

  struct Report {
    // Trained pieces; adjacent ones are merged.
    std::vector<proto::WorkItem> finished;
    // As WorkRequest.finished_step.
    uint64_t finished_step = 0;
  };
  // At most `items_max` pieces; each is returned once.
  Report TakeReport(absl::Time now, size_t items_max);
  // Pieces are to be reported, or, after kStepReportInterval, a step without any.
  bool HasReport(absl::Time now) const;
  // Returns what waits, at most `items_max` pieces: those that would be trained last.
  std::vector<proto::WorkItem> TakeWaiting(size_t items_max);
  // Returns all untrained pieces; afterwards the queue holds nothing.
  std::vector<proto::WorkItem> TakeUntrained();

  // The number of waiting examples.
  uint64_t waiting() const { return waiting_examples_; }
  // How many examples should wait, so that a reply to a request for more arrives in time: those of
  // the duration `ahead` at the current pace, at least two batches.
  uint64_t Wanted(absl::Duration ahead) const;

 private:
  struct Batch {
    uint64_t own_step = 0;  // as StepNumbers
    std::vector<proto::WorkItem> pieces;
  };

  void AddTrained(const proto::WorkItem& piece);

  std::deque<proto::WorkItem> waiting_;
  uint64_t waiting_examples_ = 0;
  std::deque<Batch> batches_;  // oldest first
  std::deque<proto::WorkItem> trained_;
  // Newest step with a finished batch, also an empty one; and the newest that was reported, when.
  uint64_t finished_step_ = 0;
  uint64_t reported_step_ = 0;
  absl::Time reported_at_ = absl::InfinitePast();

  uint64_t newest_ = 0;  // examples of the newest batch
  absl::Time newest_at_ = absl::InfiniteFuture();
  absl::Duration pace_;  // time between two batches, smoothed; 0 = unknown
};

}  // namespace covey::worker
