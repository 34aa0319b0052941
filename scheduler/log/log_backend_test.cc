// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/log_backend.h"

#include <memory>
#include <utility>
#include <vector>

#include "common/net/loopback_transport.h"
#include "common/net/message.h"
#include "common/runtime/event_loop.h"
#include "gtest/gtest.h"
#include "scheduler/log/standby.h"

namespace covey::scheduler {
namespace {

class Leader : public Actor {
 public:
  void Receive(absl::Time, const Message& message, Outbox&) override { heard.push_back(message); }
  void Wake(absl::Time, Outbox&) override {}
  absl::Time NextWake() const override { return absl::InfiniteFuture(); }

  std::vector<Message> heard;
};

TEST(LogBackendTest, ADecisionIsKnownToBeDurableHoweverFullTheQueueIs) {
  auto log = LogBackend::Open(
      {.job_name = "job"},
      {.leads = [](LogBackend::Recovered) {}, .stands_by = {}, .failed = [](absl::Status) {}});
  ASSERT_TRUE(log.ok()) << log.status();
  Leader leader;
  Standby front;
  LoopbackHub hub;
  const std::unique_ptr<Transport> transport = hub.MakeTransport("");
  // The loop is not started, so its queue is never emptied.
  EventLoop loop({.self = {kSchedulerNode, 0}, .thread_name = "scheduler"}, front, *transport);
  while (loop.Deliver(Message())) {
  }
  ASSERT_TRUE((*log)->Start("127.0.0.1:1", loop, front).has_value());
  front.Lead(leader);
  EXPECT_EQ(front.NextWake(), absl::InfiniteFuture());
  Message append;
  append.envelope.mutable_disk_append()->set_index(7);
  (*log)->port().Send(std::move(append));
  EXPECT_EQ(front.NextWake(), absl::InfinitePast());
  Outbox outbox;
  front.Wake(absl::UnixEpoch(), outbox);
  ASSERT_EQ(leader.heard.size(), 1u);
  EXPECT_EQ(leader.heard[0].envelope.disk_durable().index(), 7u);
  EXPECT_EQ(front.NextWake(), absl::InfiniteFuture());
}

TEST(LogBackendTest, AddressesOfEtcdAreHostAndPort) {
  for (const char* address : {"nowhere", ":2379", "host:", "host:0", "host:70000", "host:port"}) {
    const auto log = LogBackend::Open({.job_name = "job", .etcd = {"10.0.0.7:2379", address}}, {});
    EXPECT_EQ(log.status().code(), absl::StatusCode::kInvalidArgument) << address;
  }
  EXPECT_TRUE(LogBackend::Open({.job_name = "job", .etcd = {"[::1]:2379", "a:1"}}, {}).ok());
}

}  // namespace
}  // namespace covey::scheduler
