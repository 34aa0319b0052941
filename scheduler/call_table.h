#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "common/runtime/event_loop.h"

namespace covey::scheduler {

// One gRPC call under way. Its methods here run on the loop's thread.
class Call {
 public:
  virtual ~Call() = default;
  // The actor's reply. True when the call is over.
  virtual bool Answer(const Message& reply) = 0;
  // The caller went away. True when the call is over.
  virtual bool Cancel() = 0;

  // What the loop knows it by, and messages carry as their connection; 0 = not known yet.
  uint64_t number = 0;
};

// The calls under way, and the way from gRPC's threads to the actor. What it holds belongs to the
// loop's thread; other threads post closures to it. Actor and loop outlive it; the loop runs while
// calls are under way.
class CallTable {
 public:
  CallTable(Actor& actor, EventLoop& loop) : actor_(actor), loop_(loop) {}

  // Any thread: gives `call` a number and `request` to the actor. False: the loop's queue is full,
  // nothing will happen.
  bool Begin(std::shared_ptr<Call> call, Message request);
  // Any thread, after Begin: runs `work` if the call is not over; true = it is now. Never lost:
  // when the queue is full the caller waits until the loop, which does not block, has made room.
  void Continue(std::shared_ptr<Call> call, std::function<bool(absl::Time, Outbox&)> work);
  // Any thread: notes a request that was garbage. Logged at each power of two.
  void CountMalformed();

  // The rest on the loop's thread. Ask not from Answer, since the actor is being sent from there.
  void Ask(absl::Time now, const Call& call, Message request, Outbox& outbox);
  // Takes the actor's replies; one for a call that is over is dropped.
  void Answer(const Message& reply);
  uint64_t malformed() const { return malformed_; }

 private:
  void Post(const std::function<void(absl::Time, Outbox&)>& work);

  Actor& actor_;
  EventLoop& loop_;
  std::map<uint64_t, std::shared_ptr<Call>> calls_;
  uint64_t last_number_ = 0;
  uint64_t malformed_ = 0;
};

}  // namespace covey::scheduler
