// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

#include "absl/time/time.h"
#include "common/runtime/actor.h"
#include "common/trace/clock_offset.h"
#include "common/trace/trace_source.h"

namespace covey {

// A node's half of a trace: records while the scheduler's answers to heartbeats order it
// (HeartbeatReply.trace), then reports all pieces, one after the other.
//
//   kIdle ── an order ──▶ kRecording ── no order any more, or its time is over ──▶ kReporting
//     ▲                                                                                │
//     └──────────────────────── all pieces answered, or given up ──────────────────────┘
//
// Compares the node's clock with the scheduler's all the time, so that it is known when a trace
// ends. Actor-confined; deterministic without a TraceSource.
class TraceReporter {
 public:
  // `trace`: null = this node records nothing. It and `next_request_id` outlive the reporter.
  TraceReporter(TraceSource* trace, uint64_t& next_request_id)
      : trace_(trace), next_request_id_(next_request_id) {}

  // A heartbeat that was sent at `sent` is answered.
  void OnHeartbeatReply(absl::Time sent, absl::Time now, const proto::HeartbeatReply& reply);
  // True when the message was a reply to this machine.
  bool Receive(absl::Time now, const Message& message);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;

  const ClockOffset& clock() const { return clock_; }

 private:
  void End(absl::Time now);

  TraceSource* const trace_;
  uint64_t& next_request_id_;
  ClockOffset clock_;

  uint64_t newest_ = 0;     // trace that was recorded last
  bool recording_ = false;  // it is under way
  absl::Time ends_ = absl::InfiniteFuture();
  std::deque<proto::TracePiece> pieces_;  // to be reported
  uint64_t request_id_ = 0;               // of the first piece's report; 0 = not sent yet
  absl::Time again_ = absl::InfiniteFuture();
  absl::Time give_up_ = absl::InfiniteFuture();
};

}  // namespace covey
