// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "proto/scheduler.pb.h"

namespace covey::worker {

// The items of one worker: waiting, in batches that are being trained, and trained but not yet
// reported.
//
//   Add ─▶ waiting ── Take ─▶ batch ── Finish ─▶ to report ── TakeReport ─▶
//
// Used by DataSource. Not thread-safe; pure, time is an argument.
class LocalWorkQueue {
 public:
  void Add(const proto::WorkItem& item);

  // The next `examples`, or fewer when fewer are waiting, as one batch; pieces in the order of
  // their arrival. An empty batch counts as one, too.
  std::vector<proto::WorkItem> Take(absl::Time now, uint64_t examples);
  // Marks all batches as trained, except the newest `under_way`.
  void Finish(size_t under_way);

  // Trained pieces, with adjacent ones merged, at most `items_max`; each is returned once.
  std::vector<proto::WorkItem> TakeReport(size_t items_max);
  bool has_report() const { return !trained_.empty(); }
  // Returns all untrained pieces; afterwards the queue holds nothing.
  std::vector<proto::WorkItem> TakeUntrained();

  // The number of waiting examples.
  uint64_t waiting() const { return waiting_examples_; }
  // How many examples should wait, so that a reply to a request for more arrives in time: those of
  // the duration `ahead` at the current pace, at least two batches.
  uint64_t Wanted(absl::Duration ahead) const;

 private:
  std::deque<proto::WorkItem> waiting_;
  uint64_t waiting_examples_ = 0;
  std::deque<std::vector<proto::WorkItem>> batches_;  // oldest first
  std::deque<proto::WorkItem> trained_;

  uint64_t newest_ = 0;  // examples of the newest batch
  absl::Time newest_at_ = absl::InfiniteFuture();
  absl::Duration pace_;  // time between two batches, smoothed; 0 = unknown
};

}  // namespace covey::worker
