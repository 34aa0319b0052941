// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "common/runtime/event_loop.h"
#include "scheduler/rpc/admission.h"

namespace covey::scheduler {

// One gRPC call in flight. Its methods here run on the loop's thread.
class Call {
 public:
  virtual ~Call() = default;
  // Passes the actor's reply on to the caller. True when the call is over.
  virtual bool SendReply(const Message& reply) = 0;
  // The caller went away. True when the call is over.
  virtual bool Cancel() = 0;

  // The loop's number for the call, which messages carry as their connection; 0 = none yet.
  uint64_t number = 0;
};

// The calls in flight, and the path from gRPC's threads to the actor. Its content belongs to the
// loop's thread; other threads post closures to it, once Admission has admitted the call. Actor and
// loop outlive it; the loop runs while calls are in flight.
//
// Heartbeats and requests to leave go to the actor at once. Other requests wait in a queue, of
// which the loop takes a few per pass, so they delay a heartbeat only by these few.
class CallTable {
 public:
  // `leads`: see GrpcService::Options.
  CallTable(Actor& actor, EventLoop& loop, std::function<bool()> leads)
      : actor_(actor), loop_(loop), leads_(std::move(leads)) {}

  // Any thread: gives `call` a number and `request`, which came over the connection `peer`, to the
  // actor. RESOURCE_EXHAUSTED: too many calls are in flight, and this one has no effect.
  absl::Status Begin(std::shared_ptr<Call> call, const std::string& peer, Message request);
  // Any thread, after Begin: runs `work` if the call is not over; true = it is now. Never lost:
  // when the queue is full, the caller waits until the loop, which does not block, has made room.
  void Continue(std::shared_ptr<Call> call, std::function<bool(absl::Time, Outbox&)> work);
  // Any thread: counts a malformed request. Logged at each power of two.
  void CountMalformed();
  // Any thread: from now on calls end because of us, not because of the caller.
  void Close();

  // The following methods run on the loop's thread. Deliver must not be called from SendReply,
  // because the loop is sending the actor's messages there.
  void Deliver(absl::Time now, const Call& call, Message request, Outbox& outbox);
  // Delivers soon; may be called from SendReply.
  void DeliverAgain(const Call& call, const Message& request);
  // Takes the actor's replies; a reply to a call that is over is dropped.
  void SendReply(const Message& reply);
  // Tells the actor that the sender of `request` watched the view over a connection that broke.
  void ReportLost(absl::Time now, const Message& request, Outbox& outbox);
  bool leads() const { return !leads_ || leads_(); }
  uint64_t malformed() const { return malformed_; }

 private:
  struct Entry {
    std::shared_ptr<Call> call;
    Admission::Place place;
    Admission::Caller caller;
  };
  struct Waiting {
    uint64_t number = 0;
    Message request;
  };

  void Post(const std::function<void(absl::Time, Outbox&)>& work);
  void End(std::map<uint64_t, Entry>::iterator at);
  void TakeTurn(absl::Time now, Outbox& outbox);
  // False: the loop's queue has no room for it.
  bool PostTurn();

  Actor& actor_;
  EventLoop& loop_;
  const std::function<bool()> leads_;
  Admission admission_;  // thread-safe
  std::map<uint64_t, Entry> calls_;
  std::deque<Waiting> waiting_;
  bool turn_is_posted_ = false;
  uint64_t last_number_ = 0;
  uint64_t malformed_ = 0;
  bool closing_ = false;
};

}  // namespace covey::scheduler
