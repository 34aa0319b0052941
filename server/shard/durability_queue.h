// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/net/message.h"
#include "common/tensor/wire_format.h"

namespace covey::server {

// A complete reply, which shows the shard as of a record that the chain does not hold yet.
struct UndurableReply {
  uint64_t index = 0;  // of that record
  Message reply;
  // The format that the values are encoded to when the reply is sent. They wait as float32, which
  // all replies of one version share.
  WireFormat value_format = WireFormat::kFloat32;
  // InfiniteFuture(): the reply waits without limit.
  absl::Time deadline;
  // When the version that it shows was made.
  absl::Time updated;
};

// Replies that wait until the chain holds the record that they show, in the order of records. No
// reader sees values that could still be lost, so no reader sees a version go back when a head
// dies.
//
// Actor-confined. Memory: one old copy of the values per version that waits; the records in flight
// are bounded (kRecordsInFlightPerShard), and so are these.
class DurabilityQueue {
 public:
  // Precondition (checked): the index is not below that of the newest waiting reply.
  void Add(UndurableReply reply);
  // Removes the replies up to the record `durable` and gives them to `take`, in order.
  void TakeDurable(uint64_t durable, absl::FunctionRef<void(UndurableReply&)> take);
  // Likewise those whose deadline has passed; with InfiniteFuture(), all of them.
  void TakeLate(absl::Time now, absl::FunctionRef<void(UndurableReply&)> take);

  // Earliest deadline.
  absl::Time next_deadline() const { return next_deadline_; }
  size_t size() const { return replies_.size(); }
  // Bytes of their frames; the values of one version count once.
  size_t bytes() const;

 private:
  void FindDeadline();

  std::deque<UndurableReply> replies_;
  absl::Time next_deadline_ = absl::InfiniteFuture();
};

}  // namespace covey::server
