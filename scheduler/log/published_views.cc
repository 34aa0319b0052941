// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/published_views.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/cluster/view_change.h"
#include "proto/scheduler.pb.h"

namespace covey::scheduler {
namespace {

Buffer Serialized(const proto::WatchViewReply& reply) {
  const size_t size = reply.ByteSizeLong();
  Buffer bytes = Buffer::Allocate(size);
  COVEY_CHECK(reply.SerializeToArray(bytes.MutableData(), static_cast<int>(size)));
  return bytes;
}

}  // namespace

void PublishedViews::Publish(proto::ClusterView view) {
  COVEY_CHECK(view.epoch() > newest_.epoch());
  Step step{.change = MakeViewChange(newest_, view)};
  step.bytes = step.change.ByteSizeLong();
  step_bytes_ += step.bytes;
  steps_.push_back(std::move(step));
  while (steps_.size() > kChangesKept || step_bytes_ > kChangeBytesKept) {
    step_bytes_ -= steps_.front().bytes;
    steps_.pop_front();
  }
  newest_ = std::move(view);
  whole_ = Buffer();
  since_.clear();
}

const Buffer& PublishedViews::Since(Epoch known) {
  const auto made = since_.find(known.value());
  if (made != since_.end()) return made->second;
  auto step = std::find_if(steps_.begin(), steps_.end(), [known](const Step& candidate) {
    return Epoch(candidate.change.since()) == known;
  });
  if (step == steps_.end()) return Whole();
  proto::WatchViewReply reply;
  proto::ViewChange& change = *reply.mutable_change();
  change = step->change;
  while (++step != steps_.end()) {
    auto merged = MergeViewChanges(std::move(change), step->change);
    COVEY_CHECK(merged.ok());
    change = *std::move(merged);
  }
  Buffer bytes = Serialized(reply);
  if (bytes.size() >= newest_.ByteSizeLong()) bytes = Whole();
  return since_.emplace(known.value(), std::move(bytes)).first->second;
}

const Buffer& PublishedViews::Whole() {
  if (!whole_.empty()) return whole_;
  proto::WatchViewReply reply;
  reply.mutable_view()->Swap(&newest_);
  whole_ = Serialized(reply);
  reply.mutable_view()->Swap(&newest_);
  return whole_;
}

void UnpackWatchReply(Message& reply) {
  if (reply.frames.empty()) return;
  const Buffer& frame = reply.frames.front();
  COVEY_CHECK(reply.envelope.mutable_watch_view_reply()->ParseFromArray(
      frame.data(), static_cast<int>(frame.size())));
  reply.frames.clear();
}

}  // namespace covey::scheduler
