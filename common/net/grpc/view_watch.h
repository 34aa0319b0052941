// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"
#include "common/net/grpc/calls_in_flight.h"
#include "common/net/grpc/scheduler_stubs.h"
#include "common/net/message.h"

namespace covey {

// Turns a loop's long polls for the view into one stream from the current scheduler. The stream
// stays open from reply to reply; what arrived in between is delivered as one: the newest view, or
// the change to it. Thread-safe. `stubs` and `calls` outlive it; it is destroyed after `calls` is
// closed.
class ViewWatch {
 public:
  // `deliver` receives the replies, on gRPC's threads or inside Send or Follow. Each request gets
  // one reply, unless another request replaces it or `calls` is closed first.
  ViewWatch(SchedulerStubs& stubs, CallsInFlight& calls, std::function<void(Message)> deliver);

  // Replies to a WatchViewRequest once a view newer than its known epoch, or the change to one, has
  // arrived. Opens another stream when none is open, when the request's node is another one, or
  // when the stream goes on from a view that the node does not hold. A repeated request does not:
  // gRPC's pings find a stream that is dead, and the scheduler takes one that ends for a node that
  // may be gone. Does not block. UNAVAILABLE: the stream ended, or Follow ended it; other errors as
  // in OutcomeOf.
  void Send(Message request);

  // Another scheduler has become current: ends a stream from a former one, where a watch might wait
  // forever.
  void Follow();

 private:
  class Stream;

  // A view or a change has arrived through `stream`.
  void Arrived(const Stream& stream, proto::WatchViewReply news);
  // `stream` is over, with this outcome.
  void Ended(const Stream& stream, const absl::Status& outcome);

  // Whether what the stream brings next can follow the view that the sender of `request` holds.
  bool Follows(const proto::WatchViewRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The reply to the waiting request, when there is a newer view for it.
  std::optional<Message> Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Forgets the stream and its view, and takes the waiting request's reply, still without a status.
  std::optional<Message> DropStream() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  SchedulerStubs& stubs_;
  CallsInFlight& calls_;
  const std::function<void(Message)> deliver_;

  Mutex mutex_;
  // Null when no stream is open.
  Stream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::optional<Message> waiting_ ABSL_GUARDED_BY(mutex_);
  // To which epoch replies have led from this stream, at first the one that its request knows.
  uint64_t position_ ABSL_GUARDED_BY(mutex_) = 0;
  // What the stream has brought since then, as one.
  std::optional<proto::WatchViewReply> unread_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace covey
