// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "common/trace/trace_source.h"
#include "proto/scheduler.pb.h"

namespace covey {

// What one thread of the process did, while a trace is under way; otherwise each call but on()
// returns at once, and on() is one relaxed load. Made by ProcessTrace.
//
// Thread-safe. Spans of the kinds RECEIVED, SENT, TASK and PROGRAM must nest or follow each other,
// as those of one thread do.
class ThreadTrace {
 public:
  // The spans for which there is still room, over all threads.
  using Room = std::atomic<int64_t>;

  ThreadTrace(std::string name, uint64_t first_message, Room& room);

  bool on() const { return on_.load(std::memory_order_relaxed); }

  // What a span tells of a message.
  struct MessageFacts {
    std::string name;
    uint64_t message = 0;
    uint64_t peer = 0;
    uint64_t bytes = 0;
    uint64_t request = 0;
  };

  // The thread has handled this message, which had arrived.
  void Received(absl::Time begin, absl::Time end, const Message& message);
  // This message is about to be sent: gives it a number (Envelope.trace_id).
  MessageFacts Sending(Message& message);
  // It has been sent.
  void Sent(absl::Time begin, absl::Time end, const MessageFacts& message);
  // The thread has done something else: `name` at most kNameBytesMax bytes. `step`: 0 = none.
  void Add(proto::TracedSpan::Kind kind, absl::string_view name, absl::Time begin, absl::Time end,
           uint64_t step = 0);

  // For ProcessTrace.
  void Begin();
  // Ends, and gives what was recorded.
  proto::TracedThread End();

 private:
  struct Span {
    int64_t begin_ns = 0;
    int64_t duration_ns = 0;
    uint64_t message = 0;
    uint64_t peer = 0;
    uint64_t bytes = 0;
    uint64_t request = 0;  // or the step
    uint32_t name = 0;
    proto::TracedSpan::Kind kind = proto::TracedSpan::KIND_UNSPECIFIED;
  };

  static MessageFacts FactsOf(const Message& message, NodeId peer);
  void AddMessage(proto::TracedSpan::Kind kind, absl::Time begin, absl::Time end,
                  const MessageFacts& message);
  // Null: there is no room, or no trace.
  Span* NewSpan(proto::TracedSpan::Kind kind, absl::string_view name, absl::Time begin,
                absl::Time end) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint32_t IndexOf(absl::string_view name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string name_;
  Room& room_;
  std::atomic<bool> on_{false};
  std::atomic<uint64_t> next_message_;

  Mutex mutex_;
  std::vector<Span> spans_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> names_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, uint32_t, std::less<>> indexes_ ABSL_GUARDED_BY(mutex_);
  uint64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The traces of a process: what its threads do between Begin and End. Its memory is bounded by
// Begin's argument, and is released by End. It outlives its threads' use of their ThreadTrace.
//
// Thread-safe.
class ProcessTrace : public TraceSource {
 public:
  // `seed`: random, so that the numbers of messages of different processes differ.
  explicit ProcessTrace(uint64_t seed) : seed_(seed) {}

  // For a further thread: "data-1". Its spans begin with the next trace.
  ThreadTrace& AddThread(std::string name);

  void Begin(uint32_t spans_max) override;
  std::vector<proto::TracePiece> End(const proto::ClockRelation* clock) override;

 private:
  const uint64_t seed_;
  ThreadTrace::Room room_{0};
  Mutex mutex_;
  std::list<ThreadTrace> threads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace covey
