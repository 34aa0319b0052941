// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>

#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "proto/view.pb.h"

namespace covey::scheduler {

// The newest view that nodes may know, and what has changed in the views before it, as the bytes
// that watchers get: a WatchViewReply, serialized once for all watchers that know the same view.
//
// Limits: it remembers kChangesKept changes of kChangeBytesKept together. A watcher that knows an
// older view gets the whole view, and so does one for whom the change would not be smaller.
// Actor-confined, deterministic.
class PublishedViews {
 public:
  static constexpr size_t kChangesKept = 64;
  static constexpr size_t kChangeBytesKept = 4 << 20;

  explicit PublishedViews(proto::ClusterView first) : newest_(std::move(first)) {}

  const proto::ClusterView& newest() const { return newest_; }

  // Precondition: the epoch of `view` is higher than that of the newest view.
  void Publish(proto::ClusterView view);

  // Leads a watcher that holds the view of epoch `known` to the newest view. Made at the first call
  // for this epoch since Publish: O(bytes of what has changed).
  const Buffer& Since(Epoch known);
  // The newest view. Made at the first call since Publish: O(bytes of the view).
  const Buffer& Whole();

 private:
  struct Step {
    proto::ViewChange change;
    size_t bytes = 0;
  };

  proto::ClusterView newest_;
  // Each begins at the epoch to which the one before it leads, and the last leads to the newest
  // view.
  std::deque<Step> steps_;
  size_t step_bytes_ = 0;
  // Replies for the newest view, as far as they were asked for.
  Buffer whole_;
  std::map<uint64_t, Buffer> since_;
};

// The scheduler's reply to a watch has in its body only the epoch of the view to which it leads,
// and in its frame, which many replies share, the WatchViewReply that travels. Makes it an ordinary
// reply, as its receiver gets it. One without a frame stays as it is.
void UnpackWatchReply(Message& reply);

}  // namespace covey::scheduler
