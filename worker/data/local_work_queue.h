// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "absl/time/time.h"
#include "proto/scheduler.pb.h"

namespace covey::worker {

// The items that one worker has: waiting, in batches that are being trained, and trained but not
// yet reported.
//
//   Add ─▶ waiting ── Take ─▶ batch ── Finish ─▶ to report ── TakeReport ─▶
//
// Under DataSource. Not thread-safe; pure, time is an argument.
class LocalWorkQueue {
 public:
  void Add(const proto::WorkItem& item);

  // The next `examples`, fewer when fewer are there, as one batch; pieces in the order in which
  // they came. An empty batch counts as one, too.
  std::vector<proto::WorkItem> Take(absl::Time now, uint64_t examples);
  // All batches are trained, but the newest `under_way`.
  void Finish(size_t under_way);

  // Trained pieces, neighbours merged, at most `items_max`; each is handed out once.
  std::vector<proto::WorkItem> TakeReport(size_t items_max);
  bool has_report() const { return !trained_.empty(); }
  // Everything that is not trained; then nothing is held any more.
  std::vector<proto::WorkItem> TakeUntrained();

  // Examples that wait.
  uint64_t waiting() const { return waiting_examples_; }
  // How many should wait, so that an answer to a request for more comes in time: those of `ahead`
  // at the present pace, at least those of two batches.
  uint64_t Wanted(absl::Duration ahead) const;

 private:
  std::deque<proto::WorkItem> waiting_;
  uint64_t waiting_examples_ = 0;
  std::deque<std::vector<proto::WorkItem>> batches_;  // oldest first
  std::deque<proto::WorkItem> trained_;

  uint64_t newest_ = 0;  // examples of the newest batch
  absl::Time newest_at_ = absl::InfiniteFuture();
  absl::Duration pace_;  // between two batches, smoothed; 0 = not known
};

}  // namespace covey::worker
