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

std::vector<proto::WorkItem> LocalWorkQueue::Take(absl::Time now, uint64_t examples,
                                                  const StepNumbers& steps) {
  if (newest_at_ <= now) {
    const absl::Duration interval = now - newest_at_;
    pace_ = pace_ == absl::ZeroDuration() ? interval : pace_ + (interval - pace_) * kNewestShare;
  }
  newest_at_ = now;
  newest_ = examples;
  Batch& batch = batches_.emplace_back(Batch{.own_step = steps.begun() + 1});
  while (examples > 0 && !waiting_.empty()) {
    proto::WorkItem& next = waiting_.front();
    const uint64_t count = std::min(examples, next.count());
    proto::WorkItem& piece = batch.pieces.emplace_back(next);
    piece.set_count(count);
    next.set_first(next.first() + count);
    next.set_count(next.count() - count);
    if (next.count() == 0) waiting_.pop_front();
    examples -= count;
    waiting_examples_ -= count;
  }
  return batch.pieces;
}

void LocalWorkQueue::Finish(size_t under_way, const StepNumbers& steps) {
  while (batches_.size() > under_way) {
    Batch& batch = batches_.front();
    const uint64_t step = steps.Of(batch.own_step).value();
    for (proto::WorkItem& piece : batch.pieces) {
      piece.set_step(step);
      AddTrained(piece);
    }
    if (step > 0) finished_step_ = step;
    batches_.pop_front();
  }
}

void LocalWorkQueue::AddTrained(const proto::WorkItem& piece) {
  if (!trained_.empty() && Continues(trained_.back(), piece)) {
    proto::WorkItem& last = trained_.back();
    const bool is_same_step = last.step() == piece.step();
    if (is_same_step || trained_.size() >= kPiecesMax) {
      last.set_count(last.count() + piece.count());
      if (!is_same_step) last.set_step(0);
      return;
    }
  }
  trained_.push_back(piece);
}

bool LocalWorkQueue::HasReport(absl::Time now) const {
  if (!trained_.empty()) return true;
  return finished_step_ != reported_step_ && now >= reported_at_ + kStepReportInterval;
}

LocalWorkQueue::Report LocalWorkQueue::TakeReport(absl::Time now, size_t items_max) {
  Report report;
  while (report.finished.size() < items_max && !trained_.empty()) {
    report.finished.push_back(std::move(trained_.front()));
    trained_.pop_front();
  }
  reported_at_ = now;
  if (!trained_.empty()) return report;
  report.finished_step = finished_step_;
  reported_step_ = finished_step_;
  return report;
}

std::vector<proto::WorkItem> LocalWorkQueue::TakeWaiting(size_t items_max) {
  std::vector<proto::WorkItem> taken;
  while (taken.size() < items_max && !waiting_.empty()) {
    waiting_examples_ -= waiting_.back().count();
    taken.push_back(std::move(waiting_.back()));
    waiting_.pop_back();
  }
  return taken;
}

std::vector<proto::WorkItem> LocalWorkQueue::TakeUntrained() {
  std::vector<proto::WorkItem> untrained;
  for (const Batch& batch : batches_) {
    untrained.insert(untrained.end(), batch.pieces.begin(), batch.pieces.end());
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
