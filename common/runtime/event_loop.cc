// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/event_loop.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/cluster/limits.h"
#include "common/net/frame_bytes.h"
#include "common/net/seal/refusal.h"
#include "common/trace/process_trace.h"

namespace covey {
namespace {

constexpr int kMessagesPerPass = 64;
// For messages of at least this size handling takes longer than waking the transport, so the reply
// is sent before the rest of the pass.
constexpr size_t kFlushAtOnceBytes = 64 << 10;
// A flood from the transport delays other work by at most this duration, plus one message.
constexpr absl::Duration kServeOthersEvery = absl::Milliseconds(1);

}  // namespace

EventLoop::EventLoop(const Options& options, Actor& actor, Transport& transport)
    : actor_(actor),
      transport_(transport),
      options_(options),
      caller_spin_(options.caller_spin),
      queue_(kLoopQueueMessagesMax),
      runner_(std::make_shared<LoopRunner>(
          LoopRunner::Loop{.pass = [this](LoopRunner::Runner runner, LoopRunner::Leave leave,
                                          absl::Time until) { RunPass(runner, leave, until); },
                           .wake_up = [this] { WakeUp(); }},
          options.own_returns_after)) {}

EventLoop::~EventLoop() { Stop(); }

void EventLoop::AddPort(const Address& address, MessagePort& port) {
  COVEY_CHECK(!thread_.joinable());
  ports_.emplace_back(address, &port);
}

void EventLoop::SetDefaultPort(MessagePort& port) {
  COVEY_CHECK(!thread_.joinable());
  default_port_ = &port;
}

void EventLoop::Start() {
  COVEY_CHECK(!thread_.joinable());
  thread_ = std::thread([this] { Run(); });
}

void EventLoop::Stop() {
  COVEY_CHECK(thread_.get_id() != std::this_thread::get_id());
  runner_->Stop();
  if (!thread_.joinable()) return;
  thread_.join();
  queue_.TakeAll();
}

bool EventLoop::Deliver(Message message) {
  if (!Enqueue({.message = std::move(message)})) return false;
  runner_->Recall();
  return true;
}

bool EventLoop::Post(std::function<void(absl::Time now, Outbox& outbox)> work) {
  if (!PostBeforeWaiting(std::move(work))) return false;
  runner_->Recall();
  return true;
}

bool EventLoop::PostBeforeWaiting(std::function<void(absl::Time now, Outbox& outbox)> work) {
  return Enqueue({.work = std::move(work)});
}

bool EventLoop::Enqueue(Item item) {
  if (runner_->stopping()) return false;
  if (!queue_.Push(std::move(item))) return false;
  WakeUp();
  return true;
}

// A loop that is awake checks for work before it sleeps.
void EventLoop::WakeUp() {
  if (asleep_.exchange(false)) transport_.WakeUp();
}

void EventLoop::SetIdentity(uint64_t job, NodeId node) {
  options_.job = job;
  options_.self.node = node;
}

void EventLoop::SetEpoch(Epoch epoch) { epoch_ = epoch; }

TransportCounters EventLoop::counters() const {
  TransportCounters counters = transport_.counters();
  counters.refused.Add(Refusal::kOtherJob, wrong_job_);
  counters.dropped += wrong_node_;
  return counters;
}

void EventLoop::Run() {
  // Signals are for the program's own threads.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
  if (!options_.thread_name.empty()) {
    pthread_setname_np(pthread_self(), options_.thread_name.substr(0, 15).c_str());
  }

  actor_.Wake(MonotonicNow(), outbox_);
  Flush(outbox_);
  runner_->RunOwn();
}

void EventLoop::RunPass(LoopRunner::Runner runner, LoopRunner::Leave leave, absl::Time until) {
  const absl::Time begin = MonotonicNow();
  const uint64_t received_before = transport_.counters().received;
  const bool more = ReceiveBatch(begin, outbox_);
  bool had_work = RunQueue(outbox_);
  // Before the actor wakes, so that it finds released what the transport copies.
  Flush(outbox_);
  const bool woke = WakeIfDue(outbox_);
  Flush(outbox_);
  had_work |= transport_.counters().received != received_before;
  const absl::Time now = MonotonicNow();
  if (had_work || woke) busy_ += now - begin;
  if (leave()) return;

  absl::Duration timeout = absl::ZeroDuration();
  if (!more) {
    if (had_work) spin_until_ = now + SpinOf(runner);
    if (now >= spin_until_) {
      timeout = std::max(absl::ZeroDuration(), std::min(until, actor_.NextWake()) - now);
    } else {
      sched_yield();
    }
  }
  const absl::Duration slept = Sleep(leave, timeout);
  if (slept > absl::ZeroDuration() && runner == LoopRunner::Runner::kCaller) {
    caller_spin_ = slept < options_.caller_spin ? options_.caller_spin : caller_spin_ / 2;
  }
}

absl::Duration EventLoop::Sleep(LoopRunner::Leave leave, absl::Duration timeout) {
  if (timeout > absl::ZeroDuration()) {
    // A thread that has work for the loop from here on sees the flag and wakes the loop; earlier
    // work is seen here.
    asleep_.store(true);
    if (!queue_.empty() || leave()) timeout = absl::ZeroDuration();
  }
  const absl::Time begin = MonotonicNow();
  transport_.Wait(timeout);
  asleep_.store(false);
  return timeout > absl::ZeroDuration() ? MonotonicNow() - begin : absl::ZeroDuration();
}

bool EventLoop::ReceiveBatch(absl::Time now, Outbox& outbox) {
  others_served_ = now;
  return transport_.Receive(kMessagesPerPass, [&](Message message) {
    if (IsForAnother(message)) {
      ++wrong_node_;
      return;
    }
    if (options_.flow_control != nullptr) {
      options_.flow_control->Received(MonotonicNow(), message);
    }
    DeliverToActor(message, outbox);
    if (FrameBytes(message) >= kFlushAtOnceBytes) Flush(outbox);
    ServeOthersIfDue(outbox);
  });
}

bool EventLoop::IsForAnother(const Message& message) const {
  const NodeId to = message.to().node;
  return to != NodeId() && options_.self.node != NodeId() && to != options_.self.node;
}

void EventLoop::ServeOthersIfDue(Outbox& outbox) {
  const absl::Time now = MonotonicNow();
  if (now - others_served_ < kServeOthersEvery) return;
  RunQueue(outbox);
  WakeIfDue(outbox);
  Flush(outbox);
  others_served_ = MonotonicNow();
}

bool EventLoop::RunQueue(Outbox& outbox) {
  auto items = queue_.TakeAll();
  for (Item& item : items) {
    if (item.work) {
      RunTask("handed over", [&](absl::Time now) { item.work(now, outbox); });
      // The closure's captures are destroyed now, not after the other items have run.
      item.work = nullptr;
    } else {
      DeliverToActor(item.message, outbox);
    }
  }
  return !items.empty();
}

bool EventLoop::WakeIfDue(Outbox& outbox) {
  if (actor_.NextWake() == absl::InfiniteFuture()) return false;
  if (MonotonicNow() < actor_.NextWake()) return false;
  RunTask("timer", [&](absl::Time now) { actor_.Wake(now, outbox); });
  return true;
}

bool EventLoop::IsTraced() const { return options_.trace != nullptr && options_.trace->on(); }

void EventLoop::RunTask(absl::string_view name, absl::FunctionRef<void(absl::Time now)> work) {
  const absl::Time begin = MonotonicNow();
  work(begin);
  if (IsTraced()) {
    options_.trace->Add(proto::TracedSpan::TASK, name, begin, MonotonicNow());
  }
}

void EventLoop::DeliverToActor(const Message& message, Outbox& outbox) {
  const uint64_t job = message.envelope.header().job();
  if (job != 0 && options_.job != 0 && job != options_.job) {
    ++wrong_job_;
    return;
  }
  const absl::Time begin = MonotonicNow();
  actor_.Receive(begin, message, outbox);
  if (IsTraced()) options_.trace->Received(begin, MonotonicNow(), message);
}

void EventLoop::Flush(Outbox& outbox) {
  for (auto& [peer, endpoint] : outbox.TakeRoutes()) {
    if (endpoint.empty()) {
      transport_.DropRoute(peer);
    } else {
      transport_.SetRoute(peer, endpoint);
    }
  }
  for (Message& message : outbox.TakeMessages()) {
    FillHeader(message);
    if (!IsTraced()) {
      SendNow(std::move(message));
      continue;
    }
    const absl::Time begin = MonotonicNow();
    const ThreadTrace::MessageFacts sent = options_.trace->Sending(message);
    SendNow(std::move(message));
    options_.trace->Sent(begin, MonotonicNow(), sent);
  }
}

void EventLoop::SendNow(Message message) {
  if (MessagePort* port = PortFor(message.to())) {
    port->Send(std::move(message));
  } else {
    transport_.Send(std::move(message));
  }
}

void EventLoop::FillHeader(Message& message) const {
  proto::Header& header = *message.envelope.mutable_header();
  header.set_job(options_.job);
  header.set_node(options_.self.node.value());
  header.set_incarnation(options_.incarnation.value());
  header.set_epoch(epoch_.value());
  message.envelope.set_from_loop(options_.self.loop);
  if (options_.flow_control != nullptr) options_.flow_control->Sending(message);
}

MessagePort* EventLoop::PortFor(const Address& address) const {
  for (const auto& [port_address, port] : ports_) {
    if (port_address == address) return port;
  }
  return default_port_;
}

}  // namespace covey
