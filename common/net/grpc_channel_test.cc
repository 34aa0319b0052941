// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc_channel.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/net/testing/control_requests.h"
#include "common/net/testing/fake_scheduler.h"
#include "common/net/testing/reply_inbox.h"
#include "proto/scheduler_service.grpc.pb.h"

namespace covey {
namespace {

constexpr absl::Duration kPatience = absl::Seconds(20);

class GrpcChannelTest : public testing::Test {
 protected:
  std::unique_ptr<GrpcChannel> Connect(const std::string& address) {
    return std::make_unique<GrpcChannel>(
        GrpcChannel::Options{.scheduler = address},
        [this](Message message) { inbox_.Put(std::move(message)); });
  }

  Message Take() {
    std::optional<Message> message = inbox_.Take();
    EXPECT_TRUE(message.has_value());
    return message.value_or(Message());
  }

  ReplyInbox inbox_;
  FakeScheduler scheduler_;
};

TEST_F(GrpcChannelTest, CarriesARequestAndItsReply) {
  const auto channel = Connect(scheduler_.address());
  Message request = Request(12);
  request.envelope.mutable_register_request()->set_rank(3);
  channel->Send(std::move(request));
  const Message reply = Take();
  EXPECT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
  EXPECT_EQ(reply.envelope.register_reply().node(), 41u);
  EXPECT_EQ(reply.envelope.register_reply().rank(), 3u);
  EXPECT_EQ(reply.envelope.header().request_id(), 12u);
  EXPECT_EQ(reply.to(), kRequester);
  EXPECT_EQ(reply.from(), (Address{kSchedulerNode, 0}));
}

// The field of an envelope that carries messages of this type.
const google::protobuf::FieldDescriptor* FieldOf(const google::protobuf::Descriptor* type) {
  const google::protobuf::Descriptor& envelope = *proto::Envelope::descriptor();
  for (int i = 0; i < envelope.field_count(); ++i) {
    if (envelope.field(i)->message_type() == type) return envelope.field(i);
  }
  return nullptr;
}

TEST_F(GrpcChannelTest, CarriesEveryRpcOfTheService) {
  GrpcChannel channel({.scheduler = scheduler_.address(), .deadline = absl::Milliseconds(50)},
                      [this](Message message) { inbox_.Put(std::move(message)); });
  const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(
      proto::Scheduler::service_full_name());
  ASSERT_NE(service, nullptr);
  for (int i = 0; i < service->method_count(); ++i) {
    const google::protobuf::MethodDescriptor& rpc = *service->method(i);
    SCOPED_TRACE(rpc.name());
    ASSERT_NE(FieldOf(rpc.input_type()), nullptr);
    ASSERT_NE(FieldOf(rpc.output_type()), nullptr);
    Message request = Request(static_cast<uint64_t>(i) + 1);
    proto::Envelope& envelope = request.envelope;
    envelope.GetReflection()->MutableMessage(&envelope, FieldOf(rpc.input_type()));
    channel.Send(std::move(request));
    const Message reply = Take();
    EXPECT_EQ(BodyName(reply.envelope), FieldOf(rpc.output_type())->name());
    EXPECT_EQ(reply.envelope.header().request_id(), static_cast<uint64_t>(i) + 1);
  }
}

TEST_F(GrpcChannelTest, KeepsTheSchedulersOwnStatus) {
  const auto channel = Connect(scheduler_.address());
  Message request = Request(1);
  request.envelope.mutable_create_table_request();
  channel->Send(std::move(request));
  Message reply = Take();
  EXPECT_TRUE(reply.envelope.has_create_table_reply());
  EXPECT_EQ(StatusOf(reply), absl::AlreadyExistsError("table w exists with another spec"));

  request = Request(2);
  request.envelope.mutable_drop_table_request();
  channel->Send(std::move(request));
  EXPECT_EQ(StatusOf(Take()), absl::UnavailableError("not ready yet"));
}

TEST_F(GrpcChannelTest, SaysWhichSchedulerDoesNotAnswer) {
  const auto channel = Connect("127.0.0.1:1");
  Message request = Request(1);
  request.envelope.mutable_heartbeat_request();
  channel->Send(std::move(request));
  channel->Send(WatchRequest(2, 0));
  for (int i = 0; i < 2; ++i) {
    const Message reply = Take();
    EXPECT_TRUE(reply.envelope.has_heartbeat_reply() || reply.envelope.has_watch_view_reply());
    EXPECT_EQ(StatusOf(reply).code(), absl::StatusCode::kUnavailable);
    EXPECT_TRUE(
        absl::StartsWith(StatusOf(reply).message(), "scheduler at 127.0.0.1:1 does not answer: "))
        << StatusOf(reply);
  }
}

TEST_F(GrpcChannelTest, GivesUpAtTheDeadline) {
  GrpcChannel channel({.scheduler = scheduler_.address(), .deadline = absl::Milliseconds(50)},
                      [this](Message message) { inbox_.Put(std::move(message)); });
  Message request = Request(1);
  request.envelope.mutable_leave_request();
  channel.Send(std::move(request));
  const Message reply = Take();
  EXPECT_EQ(StatusOf(reply).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(absl::StrContains(StatusOf(reply).message(), scheduler_.address()));
}

TEST_F(GrpcChannelTest, OneStreamAnswersManyWatches) {
  const auto channel = Connect(scheduler_.address());
  channel->Send(WatchRequest(1, 0));
  Message reply = Take();
  EXPECT_EQ(reply.envelope.watch_view_reply().view().epoch(), 1u);
  EXPECT_EQ(reply.envelope.header().request_id(), 1u);
  for (uint64_t epoch = 2; epoch < 10; ++epoch) {
    channel->Send(WatchRequest(epoch, epoch - 1));
    scheduler_.Publish(epoch);
    reply = Take();
    EXPECT_EQ(reply.envelope.watch_view_reply().view().epoch(), epoch);
    EXPECT_EQ(reply.envelope.header().request_id(), epoch);
  }
  EXPECT_EQ(scheduler_.streams(), 1);
}

TEST_F(GrpcChannelTest, ARepeatedWatchKeepsTheStream) {
  const auto channel = Connect(scheduler_.address());
  channel->Send(WatchRequest(1, 1));
  channel->Send(WatchRequest(2, 1));
  scheduler_.Publish(2);
  const Message reply = Take();
  EXPECT_EQ(reply.envelope.header().request_id(), 2u);
  EXPECT_EQ(reply.envelope.watch_view_reply().view().epoch(), 2u);
  EXPECT_TRUE(inbox_.empty());
  EXPECT_EQ(scheduler_.streams(), 1);
}

TEST_F(GrpcChannelTest, TellsThatTheSchedulerEndedTheWatch) {
  const auto channel = Connect(scheduler_.address());
  channel->Send(WatchRequest(1, 0));
  EXPECT_TRUE(StatusOf(Take()).ok());
  channel->Send(WatchRequest(2, 1));
  scheduler_.Publish(0);
  const Message reply = Take();
  EXPECT_TRUE(reply.envelope.has_watch_view_reply());
  EXPECT_EQ(StatusOf(reply).code(), absl::StatusCode::kUnavailable);
}

TEST_F(GrpcChannelTest, FindsTheOneThatLeads) {
  FakeScheduler standby;
  standby.Lead(false);
  scheduler_.Publish(9);
  const auto channel =
      Connect(absl::StrCat("127.0.0.1:1, ", standby.address(), ",", scheduler_.address()));
  for (uint64_t id = 1; id < 4; ++id) {
    channel->Send(HeartbeatRequest(id));
    const Message reply = Take();
    EXPECT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
    EXPECT_EQ(reply.envelope.header().request_id(), id);
    EXPECT_EQ(reply.envelope.heartbeat_reply().epoch(), 9u);
  }
  // The lead passes to the other scheduler, and the first one's watch must not wait there forever.
  channel->Send(WatchRequest(11, 9));
  while (scheduler_.streams() == 0) {
    channel->Send(HeartbeatRequest(4));
    EXPECT_TRUE(StatusOf(Take()).ok());
  }
  scheduler_.Lead(false);
  standby.Lead(true);
  standby.Publish(12);
  channel->Send(HeartbeatRequest(5));
  bool watch_ended = false;
  bool beaten = false;
  while (!watch_ended || !beaten) {
    const Message reply = Take();
    if (reply.envelope.has_watch_view_reply()) {
      watch_ended = true;
      EXPECT_EQ(StatusOf(reply).code(), absl::StatusCode::kUnavailable);
      EXPECT_EQ(reply.envelope.header().request_id(), 11u);
    } else {
      ASSERT_TRUE(reply.envelope.has_heartbeat_reply());
      beaten = true;
      EXPECT_EQ(reply.envelope.heartbeat_reply().epoch(), 12u);
    }
  }
  channel->Send(WatchRequest(12, 9));
  EXPECT_EQ(Take().envelope.watch_view_reply().view().epoch(), 12u);
}

TEST_F(GrpcChannelTest, StaysWithASchedulerThatIsNotReady) {
  FakeScheduler other;
  const auto channel = Connect(absl::StrCat(scheduler_.address(), ",", other.address()));
  scheduler_.Publish(5);
  Message request = Request(1);
  request.envelope.mutable_drop_table_request();
  channel->Send(std::move(request));
  EXPECT_EQ(StatusOf(Take()), absl::UnavailableError("not ready yet"));
  channel->Send(HeartbeatRequest(2));
  EXPECT_EQ(Take().envelope.heartbeat_reply().epoch(), 5u);
}

TEST_F(GrpcChannelTest, SaysWhenNobodyLeads) {
  FakeScheduler other;
  scheduler_.Lead(false);
  other.Lead(false);
  const auto channel = Connect(absl::StrCat(scheduler_.address(), ",", other.address()));
  channel->Send(HeartbeatRequest(1));
  EXPECT_EQ(StatusOf(Take()), absl::UnavailableError("stands by"));
  EXPECT_TRUE(inbox_.empty());
}

TEST_F(GrpcChannelTest, ComesBackToASchedulerThatWasAway) {
  const auto channel = Connect(scheduler_.address());
  channel->Send(HeartbeatRequest(1));
  EXPECT_TRUE(StatusOf(Take()).ok());
  scheduler_.Stop();
  const absl::Time gone = MonotonicNow();
  uint64_t id = 2;
  // Long enough that a growing back-off would show.
  for (; MonotonicNow() < gone + absl::Seconds(2); ++id) {
    channel->Send(HeartbeatRequest(id));
    EXPECT_EQ(StatusOf(Take()).code(), absl::StatusCode::kUnavailable);
  }
  FakeScheduler again(scheduler_.port());
  ASSERT_EQ(again.port(), scheduler_.port());
  const absl::Time back = MonotonicNow();
  absl::Status status = absl::UnavailableError("");
  for (; !status.ok() && MonotonicNow() < back + kPatience; ++id) {
    channel->Send(HeartbeatRequest(id));
    status = StatusOf(Take());
  }
  EXPECT_TRUE(status.ok()) << status;
  RecordProperty("back_after_ms",
                 static_cast<int>(absl::ToInt64Milliseconds(MonotonicNow() - back)));
}

TEST_F(GrpcChannelTest, EndsWithoutAnswersWhileCallsAreUnderWay) {
  auto channel = Connect(scheduler_.address());
  channel->Send(WatchRequest(1, 1));
  for (uint64_t i = 2; i < 6; ++i) {
    Message request = Request(i);
    request.envelope.mutable_leave_request();
    channel->Send(std::move(request));
  }
  channel.reset();
  EXPECT_TRUE(inbox_.empty());
}

}  // namespace
}  // namespace covey
