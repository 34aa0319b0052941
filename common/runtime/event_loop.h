// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/bounded_queue.h"
#include "common/base/clock.h"
#include "common/cluster/ids.h"
#include "common/net/transport.h"
#include "common/runtime/actor.h"
#include "common/runtime/flow_control.h"
#include "common/runtime/loop_runner.h"

namespace covey {

class ThreadTrace;

// Runs one actor over one transport with the steady clock, on a thread of its own, or on a thread
// that waits for a result (loop_runner.h).
//
// One pass has three parts: messages that arrived (at most 64), items that other threads handed
// over, and a due Wake. The outbox is sent at the end of each part, and at once after a large
// message. When the messages of a pass take long, the other two parts run every millisecond in
// between: a flood of data delays neither the control plane, which comes through the queue, nor
// heartbeats, which are timers. Then the thread sleeps in the transport until the next wake-up.
//
// Memory: the loop takes one message at a time from the transport and hands it to the actor;
// messages that it has not taken yet belong to the transport (zmq_transport.h says how they are
// bounded), and messages that an actor keeps belong to the actor. The queue from other threads is
// bounded by kLoopQueueMessagesMax; tensors do not travel there.
//
// A message that is addressed to another node is dropped: it was meant for a process that listened
// here before this one.
//
// Lifetime: actor, transport and ports outlive the loop. Thread-safety: Deliver, Post and Stop may
// be called from any thread, Stop from any but the loop's own; everything else before Start.
class EventLoop {
 public:
  struct Options {
    // Fingerprint of the job. It is put into every sent message and required in every received one;
    // 0 until known (SetIdentity).
    uint64_t job = 0;
    Address self;
    Incarnation incarnation;
    std::string thread_name;  // at most 15 characters
    // After its last work the loop's own thread spins for this duration before it sleeps, for round
    // trips below the wake-up cost of a sleeping thread. Zero (the default) when processes share
    // cores.
    absl::Duration spin = absl::ZeroDuration();
    // The same for a caller that runs the loop, at most. A caller has nothing else to do, and lets
    // other threads run at each turn. After a sleep that was longer it spins half as long the next
    // time, after a shorter one as long as it may.
    absl::Duration caller_spin = absl::ZeroDuration();
    // Sees every message that the transport brings or takes; null = none. Outlives the loop.
    FlowControl* flow_control = nullptr;
    // Notes what the loop does while a trace is under way; null = nothing. Outlives the loop.
    ThreadTrace* trace = nullptr;
    // How long the loop's own thread leaves the loop to callers after one of them has waited.
    absl::Duration own_returns_after = LoopRunner::kOwnReturnsAfter;
  };

  EventLoop(const Options& options, Actor& actor, Transport& transport);
  ~EventLoop();  // stops and joins

  // Messages to `address` go to `port` instead of the transport. Before Start.
  void AddPort(const Address& address, MessagePort& port);
  // Destination of messages to other nodes for which neither a port nor the transport has a route.
  // Before Start.
  void SetDefaultPort(MessagePort& port);

  void Start();
  // Lets the current call finish, then joins. Idempotent. Items still queued are destroyed without
  // being run.
  void Stop();

  // Hands a message to the actor. False when the queue is full: the message is lost.
  bool Deliver(Message message);
  // Runs `work` on the loop's thread, between two calls of the actor; sends what it put into the
  // outbox. False when the queue is full or the loop has stopped: `work` will not run.
  bool Post(std::function<void(absl::Time now, Outbox& outbox)> work);
  // The same, for a caller that is about to wait for the result by way of runner(): it may stay in
  // the queue until then, for at most Options::own_returns_after.
  bool PostBeforeWaiting(std::function<void(absl::Time now, Outbox& outbox)> work);
  // By which threads that wait for results run the loop. It may outlive the loop.
  const std::shared_ptr<LoopRunner>& runner() const { return runner_; }

  // The identity that registration gave; put into every header from now on. On the loop's thread,
  // or before Start.
  void SetIdentity(uint64_t job, NodeId node);
  // The epoch put into headers. On the loop's thread.
  void SetEpoch(Epoch epoch);

  // The transport's counters, with messages of another job among the malformed and those for
  // another node among the dropped. On the loop's thread.
  TransportCounters counters() const;
  // How long the passes took in which there was work, without sleeping and spinning. On the loop's
  // thread, where the present pass does not count yet.
  absl::Duration busy() const { return busy_; }

 private:
  struct Item {
    Message message;
    std::function<void(absl::Time, Outbox&)> work;  // when set, `message` is empty
  };

  void Run();
  // One pass, then sleep; see LoopRunner::Loop.
  void RunPass(LoopRunner::Runner runner, LoopRunner::Leave leave, absl::Time until);
  // Waits for the transport, and returns how long the thread has slept.
  absl::Duration Sleep(LoopRunner::Leave leave, absl::Duration timeout);
  absl::Duration SpinOf(LoopRunner::Runner runner) const {
    return runner == LoopRunner::Runner::kCaller ? caller_spin_ : options_.spin;
  }
  // Hands the messages that arrived to the actor; true when there may be more.
  bool ReceiveBatch(absl::Time now, Outbox& outbox);
  // Returns whether there was anything in the queue.
  bool RunQueue(Outbox& outbox);
  // Serves the queue and a due Wake during a long pass.
  void ServeOthersIfDue(Outbox& outbox);
  // Returns whether it was due.
  bool WakeIfDue(Outbox& outbox);
  void DeliverToActor(const Message& message, Outbox& outbox);
  bool IsForAnother(const Message& message) const;
  void Flush(Outbox& outbox);
  void SendNow(Message message);
  void FillHeader(Message& message) const;
  MessagePort* PortFor(const Address& address) const;
  bool Enqueue(Item item);
  void WakeUp();
  bool IsTraced() const;
  // Runs `work` at the present time, and notes it as a task of this name.
  void RunTask(absl::string_view name, absl::FunctionRef<void(absl::Time now)> work);

  // Constant after Start.
  Actor& actor_;
  Transport& transport_;
  std::vector<std::pair<Address, MessagePort*>> ports_;
  MessagePort* default_port_ = nullptr;

  // Owned by the thread that runs the loop.
  Options options_;
  Epoch epoch_;
  uint64_t wrong_job_ = 0;
  uint64_t wrong_node_ = 0;
  absl::Time others_served_ = absl::InfinitePast();
  absl::Time spin_until_ = absl::InfinitePast();
  absl::Duration caller_spin_;
  absl::Duration busy_;
  Outbox outbox_;

  // Shared.
  BoundedQueue<Item> queue_;
  std::atomic<bool> asleep_{false};
  const std::shared_ptr<LoopRunner> runner_;
  std::thread thread_;
};

// Lets another loop of the same process reach `loop`: in-process, no socket.
class LoopPort : public MessagePort {
 public:
  explicit LoopPort(EventLoop& loop) : loop_(loop) {}
  void Send(Message message) override { loop_.Deliver(std::move(message)); }

 private:
  EventLoop& loop_;
};

}  // namespace covey
