// SPDX-License-Identifier: Apache-2.0
#include "worker/data/local_work_queue.h"

#include <algorithm>
#include <utility>

namespace covey::worker {
namespace {

// Weight of the newest interval in the smoothed pace.
constexpr double kNewestShare = 0.2;
// The most batches that wait, however fast they are trained.
constexpr int64_t kBatchesAheadMax = 256;

bool Continues(const proto::WorkItem& a, const proto::WorkItem& b) {
  return a.pass() == b.pass() && a.first() + a.count() == b.first();
}

}  // namespace

void LocalWorkQueue::Add(const proto::WorkItem& item) {
  waiting_.push_back(item);
  waiting_examples_ += item.count();
}

std::vector<proto::WorkItem> LocalWorkQueue::Take(absl::Time now, uint64_t examples) {
  if (newest_at_ <= now) {
    const absl::Duration interval = now - newest_at_;
    pace_ = pace_ == absl::ZeroDuration() ? interval : pace_ + (interval - pace_) * kNewestShare;
  }
  newest_at_ = now;
  newest_ = examples;
  std::vector<proto::WorkItem>& batch = batches_.emplace_back();
  while (examples > 0 && !waiting_.empty()) {
    proto::WorkItem& next = waiting_.front();
    const uint64_t count = std::min(examples, next.count());
    proto::WorkItem& piece = batch.emplace_back(next);
    piece.set_count(count);
    next.set_first(next.first() + count);
    next.set_count(next.count() - count);
    if (next.count() == 0) waiting_.pop_front();
    examples -= count;
    waiting_examples_ -= count;
  }
  return batch;
}

void LocalWorkQueue::Finish(size_t under_way) {
  while (batches_.size() > under_way) {
    for (proto::WorkItem& piece : batches_.front()) {
      if (!trained_.empty() && Continues(trained_.back(), piece)) {
        trained_.back().set_count(trained_.back().count() + piece.count());
      } else {
        trained_.push_back(std::move(piece));
      }
    }
    batches_.pop_front();
  }
}

std::vector<proto::WorkItem> LocalWorkQueue::TakeReport(size_t items_max) {
  std::vector<proto::WorkItem> report;
  while (report.size() < items_max && !trained_.empty()) {
    report.push_back(std::move(trained_.front()));
    trained_.pop_front();
  }
  return report;
}

std::vector<proto::WorkItem> LocalWorkQueue::TakeUntrained() {
  std::vector<proto::WorkItem> untrained;
  for (std::vector<proto::WorkItem>& batch : batches_) {
    untrained.insert(untrained.end(), batch.begin(), batch.end());
  }
  untrained.insert(untrained.end(), waiting_.begin(), waiting_.end());
  batches_.clear();
  waiting_.clear();
  waiting_examples_ = 0;
  return untrained;
}

uint64_t LocalWorkQueue::Wanted(absl::Duration ahead) const {
  int64_t batches = 2;
  if (pace_ > absl::ZeroDuration()) {
    absl::Duration rest;
    batches += absl::IDivDuration(ahead, pace_, &rest);
  }
  return static_cast<uint64_t>(std::min(batches, kBatchesAheadMax)) *
         std::max<uint64_t>(newest_, 1);
}

}  // namespace covey::worker
