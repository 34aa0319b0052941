// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/reliable_port.h"

#include <future>
#include <memory>
#include <vector>

#include "common/net/loopback_transport.h"
#include "common/net/message.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

class Idle : public Actor {
 public:
  void Receive(absl::Time, const Message&, Outbox&) override { ++received; }
  void Wake(absl::Time, Outbox&) override { ++woken; }
  absl::Time NextWake() const override { return next; }

  absl::Time next = absl::InfiniteFuture();
  int received = 0;
  int woken = 0;
};

// Reports when it has received two replies of the disk, among other messages.
class Listener : public Actor {
 public:
  void Receive(absl::Time, const Message& message, Outbox&) override {
    if (!message.envelope.has_disk_durable()) return;
    heard.push_back(message.envelope.disk_durable().index());
    if (heard.size() == 2) done.set_value();
  }
  void Wake(absl::Time, Outbox&) override {}
  absl::Time NextWake() const override { return absl::InfiniteFuture(); }

  std::vector<uint64_t> heard;
  std::promise<void> done;
};

Message Durable(uint64_t index) {
  Message message;
  message.envelope.mutable_disk_durable()->set_index(index);
  return message;
}

TEST(ReliablePortTest, WhatAFullQueueRefusesIsOfferedAgainInOrder) {
  Idle actor;
  Listener listener;
  LoopbackHub hub;
  const std::unique_ptr<Transport> transport = hub.MakeTransport("");
  EventLoop loop({.self = {kSchedulerNode, 0}, .thread_name = "listener"}, listener, *transport);
  ReliablePort port(actor, loop);
  EXPECT_EQ(port.NextWake(), absl::InfiniteFuture());
  while (loop.Deliver(Message())) {
  }
  port.Send(Durable(1));
  port.Send(Durable(2));
  EXPECT_NE(port.NextWake(), absl::InfiniteFuture());
  loop.Start();
  Outbox outbox;
  while (port.NextWake() != absl::InfiniteFuture()) port.Wake(port.NextWake(), outbox);
  listener.done.get_future().wait();
  loop.Stop();
  EXPECT_EQ(listener.heard, (std::vector<uint64_t>{1, 2}));
  EXPECT_EQ(actor.woken, 0) << "its own time has not come";
}

TEST(ReliablePortTest, TheActorGoesOnAsIfItWereAlone) {
  Idle actor;
  Listener listener;
  LoopbackHub hub;
  const std::unique_ptr<Transport> transport = hub.MakeTransport("");
  EventLoop loop({.self = {kSchedulerNode, 0}, .thread_name = "listener"}, listener, *transport);
  ReliablePort port(actor, loop);
  actor.next = absl::UnixEpoch() + absl::Seconds(3);
  EXPECT_EQ(port.NextWake(), actor.next);
  Outbox outbox;
  port.Receive(absl::UnixEpoch(), Message(), outbox);
  port.Wake(actor.next, outbox);
  EXPECT_EQ(actor.received, 1);
  EXPECT_EQ(actor.woken, 1);
}

}  // namespace
}  // namespace covey::scheduler
