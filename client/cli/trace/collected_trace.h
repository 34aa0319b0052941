// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/trace/clock_offset.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// A span on the scheduler's clock.
struct CollectedSpan {
  proto::TracedSpan::Kind kind = proto::TracedSpan::KIND_UNSPECIFIED;
  uint32_t name = 0;  // in CollectedThread::names
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  // As in proto::TracedSpan.
  uint64_t message = 0;
  NodeId peer;
  uint64_t bytes = 0;
  uint64_t request = 0;
  uint64_t step = 0;
};

struct CollectedThread {
  std::vector<std::string> names;
  std::vector<CollectedSpan> spans;
  uint64_t dropped = 0;
};

// What one node has reported.
struct CollectedNode {
  std::string name;
  std::map<std::string, CollectedThread> threads;
  bool is_complete = false;
  // Its clock against the scheduler's; 0 = never compared, and its spans are where they are by
  // chance. `shift`: by how much its spans were moved so that no message arrives before it was
  // sent; at most the error.
  absl::Duration clock_error = absl::ZeroDuration();
  absl::Duration shift = absl::ZeroDuration();
  double drift = 0;
};

// The reports of all nodes on one time line. A value; Add and Align change it, in this order.
//
// The clocks: each node has compared its own with the scheduler's (common/trace/clock_offset.h), up
// to an error that it states. Messages tell more: none arrives before it was sent. Align moves the
// spans of nodes within their errors until that is so, or cannot be.
class CollectedTrace {
 public:
  // Pieces of a node in the order of their numbers. Spans and clocks that no node can have are left
  // out.
  void Add(const proto::TracePiece& piece);
  void Align();

  const std::map<NodeId, CollectedNode>& nodes() const { return nodes_; }
  uint64_t spans() const;
  uint64_t dropped() const;
  // Of messages that both sides have recorded: how many, and of these such that arrive before they
  // were sent, and by how much at most.
  uint64_t messages() const { return messages_; }
  uint64_t backward() const { return backward_; }
  absl::Duration backward_by() const { return backward_by_; }

 private:
  std::map<NodeId, CollectedNode> nodes_;
  std::map<NodeId, ClockLine> clocks_;
  uint64_t messages_ = 0;
  uint64_t backward_ = 0;
  absl::Duration backward_by_ = absl::ZeroDuration();
};

}  // namespace covey::cli
