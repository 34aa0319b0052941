// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/event_loop.h"
#include "common/net/seal/refusal.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/cluster/limits.h"
#include "common/net/loopback_transport.h"

namespace covey {
namespace {

constexpr Address kSelf = {NodeId(5), 1};
constexpr Address kPeer = {NodeId(6), 2};
constexpr uint64_t kJob = 99;
constexpr absl::Duration kPatience = absl::Seconds(20);

// A record of events on a loop's thread, for which the test's thread can wait. Thread-safe.
class Record {
 public:
  void Add(const std::string& what) {
    MutexLock lock(mutex_);
    lines_.push_back(what);
    changed_.NotifyAll();
  }
  // All lines once there are `count` of them, or those that exist when the patience ends.
  std::vector<std::string> WaitFor(size_t count) {
    const absl::Time deadline = MonotonicNow() + kPatience;
    MutexLock lock(mutex_);
    while (lines_.size() < count && MonotonicNow() < deadline) {
      changed_.WaitFor(mutex_, deadline - MonotonicNow());
    }
    return lines_;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

using Lines = std::vector<std::string>;

// An actor made of closures.
class TestActor : public Actor {
 public:
  void Receive(absl::Time now, const Message& message, Outbox& outbox) override {
    if (on_receive) on_receive(now, message, outbox);
  }
  void Wake(absl::Time now, Outbox& outbox) override {
    if (on_wake) on_wake(now, outbox);
  }
  absl::Time NextWake() const override { return next_wake; }

  std::function<void(absl::Time, const Message&, Outbox&)> on_receive;
  std::function<void(absl::Time, Outbox&)> on_wake;
  absl::Time next_wake = absl::InfiniteFuture();
};

class RecordingPort : public MessagePort {
 public:
  explicit RecordingPort(std::function<void(const Message&)> sink) : sink_(std::move(sink)) {}
  void Send(Message message) override { sink_(message); }

 private:
  std::function<void(const Message&)> sink_;
};

Message MessageTo(const Address& to, uint64_t request_id) {
  Message message;
  message.set_to(to);
  message.envelope.mutable_header()->set_request_id(request_id);
  return message;
}

std::string IdOf(const Message& message) {
  return std::to_string(message.envelope.header().request_id());
}

class EventLoopTest : public testing::Test {
 protected:
  EventLoop::Options Options() const {
    return {.job = kJob, .self = kSelf, .incarnation = Incarnation(7), .thread_name = "test"};
  }

  Record record_;
  LoopbackHub hub_;
  const std::unique_ptr<Transport> transport_ = hub_.MakeTransport("self");
  const std::unique_ptr<Transport> peer_ = hub_.MakeTransport("peer");
  TestActor actor_;
  EventLoop loop_{Options(), actor_, *transport_};
};

TEST_F(EventLoopTest, WakesTheActorOnceAtTheStart) {
  actor_.on_wake = [&](absl::Time, Outbox&) { record_.Add("wake"); };
  loop_.Start();
  loop_.Post([&](absl::Time, Outbox&) { record_.Add("posted"); });
  EXPECT_EQ(record_.WaitFor(2), (Lines{"wake", "posted"}));
}

// Handlers, timers and handed-over work count; sleeping does not.
TEST_F(EventLoopTest, TellsHowLongItWasAtWork) {
  constexpr absl::Duration kEach = absl::Milliseconds(30);
  constexpr absl::Duration kIdle = absl::Milliseconds(200);
  const auto work = [this](const std::string& what) {
    for (const absl::Time end = MonotonicNow() + kEach; MonotonicNow() < end;) {
    }
    record_.Add(what);
  };
  actor_.on_receive = [&](absl::Time, const Message&, Outbox&) {
    work("received");
    actor_.next_wake = MonotonicNow() + kIdle;
  };
  actor_.on_wake = [&](absl::Time now, Outbox&) {
    if (now < actor_.next_wake) return;  // at the start
    actor_.next_wake = absl::InfiniteFuture();
    work("woke");
  };
  const absl::Time begin = MonotonicNow();
  loop_.Start();
  peer_->SetRoute(kSelf, transport_->endpoint());
  peer_->Send(MessageTo(kSelf, 1));
  EXPECT_EQ(record_.WaitFor(2), (Lines{"received", "woke"}));
  loop_.Post([&](absl::Time, Outbox&) { work("worked"); });
  record_.WaitFor(3);
  absl::Duration busy;
  loop_.Post([&](absl::Time, Outbox&) {
    busy = loop_.busy();
    record_.Add("read");
  });
  record_.WaitFor(4);
  EXPECT_GE(busy, 3 * kEach);
  EXPECT_LE(busy, MonotonicNow() - begin - kIdle / 2);
}

// Notes the messages that pass, and writes into each outgoing message how many have arrived.
class CountingFlowControl : public FlowControl {
 public:
  void Received(absl::Time, const Message&) override { ++received_; }
  void Sending(Message& message) override { message.envelope.set_credit_bytes(received_); }

 private:
  uint64_t received_ = 0;
};

TEST_F(EventLoopTest, FlowControlSeesEachMessageInAndOut) {
  CountingFlowControl flow_control;
  EventLoop::Options options = Options();
  options.flow_control = &flow_control;
  EventLoop loop(options, actor_, *transport_);
  actor_.on_receive = [&](absl::Time, const Message& message, Outbox& outbox) {
    outbox.Send(MakeReply(message));
  };
  loop.Start();
  peer_->SetRoute(kSelf, transport_->endpoint());
  std::vector<uint64_t> credits;
  for (const uint64_t node : {6, 7, 6}) {
    Message request = MessageTo(kSelf, node);
    request.envelope.mutable_header()->set_node(node);
    peer_->Send(std::move(request));
    const size_t before = credits.size();
    const absl::Time deadline = MonotonicNow() + kPatience;
    while (credits.size() == before && MonotonicNow() < deadline) {
      peer_->Wait(kPatience);
      peer_->Receive(1,
                     [&](Message message) { credits.push_back(message.envelope.credit_bytes()); });
    }
  }
  EXPECT_EQ(credits, (std::vector<uint64_t>{1, 2, 3}));
}

TEST_F(EventLoopTest, DropsWhatIsAddressedToAnotherNode) {
  actor_.on_receive = [&](absl::Time, const Message& message, Outbox&) {
    record_.Add(IdOf(message));
  };
  loop_.Start();
  // Meant for the process that listened here before.
  peer_->SetRoute({NodeId(4), 1}, transport_->endpoint());
  peer_->SetRoute(kSelf, transport_->endpoint());
  peer_->Send(MessageTo({NodeId(4), 1}, 1));
  peer_->Send(MessageTo(kSelf, 2));
  EXPECT_EQ(record_.WaitFor(1), (Lines{"2"}));
  loop_.Post([&](absl::Time, Outbox&) { record_.Add(std::to_string(loop_.counters().dropped)); });
  EXPECT_EQ(record_.WaitFor(2), (Lines{"2", "1"}));
}

TEST_F(EventLoopTest, AFloodOfMessagesDelaysNeitherTimersNorTheQueue) {
  // More messages than one pass takes, each as slow as a large gradient.
  peer_->SetRoute(kSelf, transport_->endpoint());
  for (uint64_t i = 0; i < 60; ++i) peer_->Send(MessageTo(kSelf, i));
  uint64_t handled = 0;
  uint64_t handled_at_wake = 0;
  actor_.on_receive = [&](absl::Time, const Message&, Outbox&) {
    if (++handled == 3) {
      actor_.next_wake = MonotonicNow();
      loop_.Post([&](absl::Time, Outbox&) { record_.Add(std::to_string(handled)); });
    }
    const absl::Time until = MonotonicNow() + absl::Milliseconds(2);
    while (MonotonicNow() < until) {
    }
  };
  actor_.on_wake = [&](absl::Time, Outbox&) {
    actor_.next_wake = absl::InfiniteFuture();
    if (handled == 0) return;  // The one at the start.
    handled_at_wake = handled;
    record_.Add("wake");
  };
  loop_.Start();
  EXPECT_EQ(record_.WaitFor(2), (Lines{"3", "wake"}));
  loop_.Stop();
  EXPECT_EQ(handled_at_wake, 3u);
}

TEST_F(EventLoopTest, GivesTheActorWhatArrivesAndSendsItsReply) {
  actor_.on_receive = [&](absl::Time, const Message& message, Outbox& outbox) {
    outbox.Send(MakeReply(message));
  };
  loop_.Start();
  peer_->SetRoute(kSelf, transport_->endpoint());
  Message request = MessageTo(kSelf, 3);
  request.envelope.mutable_header()->set_node(kPeer.node.value());
  request.envelope.set_from_loop(kPeer.loop);
  peer_->Send(std::move(request));
  std::vector<Message> replies;
  const absl::Time deadline = MonotonicNow() + kPatience;
  while (replies.empty() && MonotonicNow() < deadline) {
    peer_->Wait(kPatience);
    peer_->Receive(1, [&](Message message) { replies.push_back(std::move(message)); });
  }
  ASSERT_EQ(replies.size(), 1u);
  EXPECT_EQ(replies[0].to(), kPeer);
  EXPECT_EQ(replies[0].from(), kSelf);
  EXPECT_EQ(IdOf(replies[0]), "3");
}

TEST_F(EventLoopTest, FillsTheHeader) {
  RecordingPort port([&](const Message& message) {
    const proto::Header& header = message.envelope.header();
    EXPECT_EQ(message.from(), (Address{NodeId(50), kSelf.loop}));
    EXPECT_EQ(header.job(), 100u);
    EXPECT_EQ(header.incarnation(), 7u);
    EXPECT_EQ(header.epoch(), 8u);
    EXPECT_EQ(header.request_id(), 4u);
    record_.Add("sent");
  });
  loop_.AddPort(kPeer, port);
  loop_.Start();
  loop_.Post([&](absl::Time, Outbox& outbox) {
    loop_.SetIdentity(100, NodeId(50));
    loop_.SetEpoch(Epoch(8));
    outbox.Send(MessageTo(kPeer, 4));
  });
  EXPECT_EQ(record_.WaitFor(1).size(), 1u);
}

TEST_F(EventLoopTest, KeepsTheOrderOfPostAndDeliver) {
  actor_.on_receive = [&](absl::Time, const Message& message, Outbox&) {
    record_.Add(IdOf(message));
  };
  loop_.Deliver(MessageTo(kSelf, 1));
  loop_.Post([&](absl::Time, Outbox&) { record_.Add("work"); });
  loop_.Deliver(MessageTo(kSelf, 2));
  loop_.Start();
  EXPECT_EQ(record_.WaitFor(3), (Lines{"1", "work", "2"}));
}

TEST_F(EventLoopTest, ManyThreadsMayPost) {
  loop_.Start();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 100; ++k) {
        EXPECT_TRUE(loop_.Post([&](absl::Time, Outbox&) { record_.Add("x"); }));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(record_.WaitFor(400).size(), 400u);
}

TEST_F(EventLoopTest, PortsComeBeforeTheDefaultPortBeforeTheTransport) {
  RecordingPort port([&](const Message& message) { record_.Add("port " + IdOf(message)); });
  RecordingPort rest([&](const Message& message) { record_.Add("rest " + IdOf(message)); });
  loop_.AddPort(kPeer, port);
  loop_.SetDefaultPort(rest);
  loop_.Start();
  loop_.Post([](absl::Time, Outbox& outbox) {
    outbox.Send(MessageTo({NodeId(9), 0}, 1));
    outbox.Send(MessageTo(kPeer, 2));
  });
  EXPECT_EQ(record_.WaitFor(2), (Lines{"rest 1", "port 2"}));
}

TEST_F(EventLoopTest, ALoopPortReachesAnotherLoop) {
  TestActor other_actor;
  other_actor.on_receive = [&](absl::Time, const Message& message, Outbox&) {
    record_.Add(IdOf(message));
  };
  EventLoop other({.job = kJob, .self = kPeer}, other_actor, *peer_);
  LoopPort port(other);
  loop_.AddPort(kPeer, port);
  other.Start();
  loop_.Start();
  loop_.Post([](absl::Time, Outbox& outbox) { outbox.Send(MessageTo(kPeer, 12)); });
  EXPECT_EQ(record_.WaitFor(1), (Lines{"12"}));
  loop_.Stop();
}

TEST_F(EventLoopTest, SetsRoutesBeforeItSendsAndDropsThem) {
  loop_.Start();
  loop_.Post([&](absl::Time, Outbox& outbox) {
    outbox.Send(MessageTo(kPeer, 1));
    outbox.Route(kPeer, peer_->endpoint());
  });
  loop_.Post([&](absl::Time, Outbox&) { record_.Add("sent"); });
  EXPECT_EQ(record_.WaitFor(1).size(), 1u);
  std::vector<std::string> arrived;
  const absl::Time deadline = MonotonicNow() + kPatience;
  while (arrived.empty() && MonotonicNow() < deadline) {
    peer_->Wait(kPatience);
    peer_->Receive(9, [&](Message message) { arrived.push_back(IdOf(message)); });
  }
  EXPECT_EQ(arrived, (Lines{"1"}));
  loop_.Post([&](absl::Time, Outbox& outbox) {
    outbox.Route(kPeer, "");
    outbox.Send(MessageTo(kPeer, 2));
  });
  loop_.Stop();
  EXPECT_LE(loop_.counters().sent, 1u);
}

TEST_F(EventLoopTest, WakesWhenDueAndNotBefore) {
  const absl::Time start = MonotonicNow();
  const absl::Duration interval = absl::Milliseconds(3);
  actor_.next_wake = start + interval;
  bool first = true;
  actor_.on_wake = [&](absl::Time now, Outbox&) {
    if (!std::exchange(first, false)) {
      EXPECT_GE(now, actor_.next_wake);
      record_.Add("wake");
      actor_.next_wake = now + interval;
    }
  };
  loop_.Start();
  EXPECT_GE(record_.WaitFor(3).size(), 3u);
  EXPECT_GE(MonotonicNow() - start, 3 * interval);
}

TEST_F(EventLoopTest, ANewWakeUpTimeFromAPostCounts) {
  actor_.on_wake = [&](absl::Time, Outbox&) {
    record_.Add("wake");
    actor_.next_wake = absl::InfiniteFuture();
  };
  loop_.Start();
  EXPECT_EQ(record_.WaitFor(1).size(), 1u);
  loop_.Post([&](absl::Time now, Outbox&) { actor_.next_wake = now + absl::Milliseconds(1); });
  EXPECT_EQ(record_.WaitFor(2).size(), 2u);
}

TEST_F(EventLoopTest, DropsAndCountsMessagesOfAnotherJob) {
  actor_.on_receive = [&](absl::Time, const Message& message, Outbox&) {
    record_.Add(IdOf(message));
  };
  uint64_t id = 0;
  for (const uint64_t job : {kJob, kJob + 1, uint64_t{0}}) {
    Message message = MessageTo(kSelf, ++id);
    message.envelope.mutable_header()->set_job(job);
    loop_.Deliver(std::move(message));
  }
  loop_.Start();
  EXPECT_EQ(record_.WaitFor(2), (Lines{"1", "3"}));
  loop_.Stop();
  EXPECT_EQ(loop_.counters().refused.of(Refusal::kOtherJob), 1u);
}

TEST_F(EventLoopTest, AFullQueueRefuses) {
  for (size_t i = 0; i < kLoopQueueMessagesMax; ++i) ASSERT_TRUE(loop_.Deliver(Message()));
  EXPECT_FALSE(loop_.Deliver(Message()));
  EXPECT_FALSE(loop_.Post([](absl::Time, Outbox&) {}));
}

TEST_F(EventLoopTest, StopIsIdempotentAndRefusesWork) {
  loop_.Start();
  loop_.Stop();
  loop_.Stop();
  EXPECT_FALSE(loop_.Post([](absl::Time, Outbox&) {}));
  EXPECT_FALSE(loop_.Deliver(Message()));
}

TEST_F(EventLoopTest, StopDestroysWhatHasNotRun) {
  auto held = std::make_shared<int>(1);
  loop_.Start();
  loop_.Post([this](absl::Time, Outbox&) {
    record_.Add("inside");
    while (loop_.Post([](absl::Time, Outbox&) {})) {
    }
  });
  record_.WaitFor(1);
  loop_.Post([held](absl::Time, Outbox&) {});
  loop_.Stop();
  EXPECT_EQ(held.use_count(), 1);
}

// Its thread hands what it has sent to the transport before it looks again.
TEST_F(EventLoopTest, AWakeFindsReleasedWhatTheSamePassHasSent) {
  RecordingPort port([](const Message&) {});
  loop_.AddPort(kPeer, port);
  Buffer frame;
  actor_.on_receive = [&](absl::Time now, const Message&, Outbox& outbox) {
    frame = Buffer::Allocate(8);
    Message message = MessageTo(kPeer, 1);
    message.frames.push_back(frame);
    outbox.Send(std::move(message));
    actor_.next_wake = now;
  };
  actor_.on_wake = [&](absl::Time, Outbox&) {
    if (frame.empty()) return;  // The one at the start.
    actor_.next_wake = absl::InfiniteFuture();
    record_.Add(frame.IsUnique() ? "released" : "not released");
  };
  loop_.Start();
  loop_.Deliver(MessageTo(kSelf, 1));
  EXPECT_EQ(record_.WaitFor(1), (Lines{"released"}));
  loop_.Stop();
}

// Counts how often the thread that has made this sleeps in the transport, and looks without a
// sleep.
class LookCounter : public Transport {
 public:
  explicit LookCounter(Transport& transport) : transport_(transport) {}
  std::string endpoint() const override { return transport_.endpoint(); }
  void SetRoute(const Address& peer, const std::string& endpoint) override {
    transport_.SetRoute(peer, endpoint);
  }
  void DropRoute(const Address& peer) override { transport_.DropRoute(peer); }
  void Send(Message message) override { transport_.Send(std::move(message)); }
  bool Receive(int limit, absl::FunctionRef<void(Message)> sink) override {
    return transport_.Receive(limit, sink);
  }
  void Wait(absl::Duration timeout) override {
    if (std::this_thread::get_id() == caller_)
      ++(timeout > absl::ZeroDuration() ? sleeps_ : looks_);
    transport_.Wait(timeout);
  }
  void WakeUp() override { transport_.WakeUp(); }
  const TransportCounters& counters() const override { return transport_.counters(); }

  int sleeps() const { return sleeps_; }
  int looks() const { return looks_; }

 private:
  Transport& transport_;
  const std::thread::id caller_ = std::this_thread::get_id();
  int sleeps_ = 0;
  int looks_ = 0;
};

TEST_F(EventLoopTest, ACallerLooksForItsResultBeforeItSleeps) {
  for (const bool spins : {false, true}) {
    EventLoop::Options options = Options();
    options.caller_spin = spins ? absl::Hours(1) : absl::ZeroDuration();
    options.own_returns_after = absl::InfiniteDuration();
    TestActor actor;
    LookCounter transport(*transport_);
    EventLoop loop(options, actor, transport);
    loop.Start();
    // The caller has the turn for good; a first call may still find the loop's own thread there.
    loop.runner()->RunUntil([] { return false; }, MonotonicNow() + absl::Milliseconds(20));
    const int sleeps_before = transport.sleeps();
    loop.PostBeforeWaiting([](absl::Time, Outbox&) {});
    loop.runner()->RunUntil([] { return false; }, MonotonicNow() + absl::Milliseconds(20));
    EXPECT_EQ(transport.sleeps() > sleeps_before, !spins);
    loop.Stop();
  }
}

// Looking does not pay where results take long.
TEST_F(EventLoopTest, ACallerThatSleepsLongSoonLooksNoMore) {
  EventLoop::Options options = Options();
  options.caller_spin = absl::Milliseconds(4);
  options.own_returns_after = absl::InfiniteDuration();
  TestActor actor;
  LookCounter transport(*transport_);
  EventLoop loop(options, actor, transport);
  loop.Start();
  int looks = 0;
  for (int i = 0; i < 30; ++i) {
    const int before = transport.looks();
    loop.PostBeforeWaiting([](absl::Time, Outbox&) {});
    loop.runner()->RunUntil([] { return false; }, MonotonicNow() + absl::Milliseconds(12));
    looks = transport.looks() - before;
  }
  EXPECT_LE(looks, 3);
  loop.Stop();
}

TEST_F(EventLoopTest, SpinningChangesNothingButSpeed) {
  EventLoop::Options options = Options();
  options.spin = absl::Milliseconds(5);
  TestActor actor;
  actor.on_receive = [&](absl::Time, const Message& message, Outbox& outbox) {
    outbox.Send(MakeReply(message));
  };
  const auto spinning = hub_.MakeTransport("spinning");
  EventLoop loop(options, actor, *spinning);
  loop.Start();
  peer_->SetRoute(kSelf, spinning->endpoint());
  int replies = 0;
  const absl::Time deadline = MonotonicNow() + kPatience;
  for (int i = 0; i < 20; ++i) {
    peer_->Send(MessageTo(kSelf, 1));
    while (replies <= i && MonotonicNow() < deadline) {
      peer_->Wait(kPatience);
      peer_->Receive(1, [&](Message) { ++replies; });
    }
  }
  EXPECT_EQ(replies, 20);
}

}  // namespace
}  // namespace covey
