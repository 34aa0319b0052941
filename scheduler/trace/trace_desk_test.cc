// SPDX-License-Identifier: Apache-2.0
#include "scheduler/trace/trace_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/cluster/limits.h"
#include "common/trace/process_trace.h"
#include "scheduler/state/cluster_state_fixture.h"

namespace covey::scheduler {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr NodeId kServer(2);
constexpr NodeId kWorker(3);

class TraceDeskTest : public testing::Test {
 protected:
  TraceDeskTest() {
    AddNode(kServer, "server-0");
    AddNode(kWorker, "worker-0");
  }

  void AddNode(NodeId id, const std::string& name) {
    proto::Node& node = *state_.mutable_view()->add_nodes();
    node.set_id(id.value());
    node.set_name(name);
    node.set_state(proto::Node::ALIVE);
  }

  absl::StatusOr<proto::TraceOrder> Start(absl::Duration duration) {
    proto::StartTraceRequest request;
    request.set_duration_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(duration)));
    return desk_.Start(now_, request);
  }
  proto::HeartbeatReply Tell(NodeId node) {
    proto::HeartbeatReply reply;
    desk_.Tell(now_, node, reply);
    return reply;
  }
  absl::Status Report(NodeId node, uint64_t trace, uint32_t number, bool is_last,
                      size_t bytes = 10) {
    proto::TraceReportRequest request;
    request.set_trace(trace);
    request.mutable_piece()->set_number(number);
    request.mutable_piece()->set_is_last(is_last);
    request.mutable_piece()->add_threads()->set_name(std::string(bytes, 'x'));
    return desk_.OnReport(node, request);
  }
  absl::StatusOr<proto::TraceReply> Get(uint64_t trace, bool end = false, uint64_t known = 0) {
    proto::TraceRequest request;
    request.set_trace(trace);
    request.set_end(end);
    request.set_pieces_known(known);
    return desk_.Get(now_, request);
  }

  TestState state_;
  ProcessTrace own_{1};
  ThreadTrace& thread_ = own_.AddThread("scheduler");
  TraceDesk desk_{&own_, state_};
  absl::Time now_ = absl::UnixEpoch() + absl::Seconds(1000);
};

TEST_F(TraceDeskTest, TellsItsClockAndNoTraceUntilOneStarts) {
  EXPECT_EQ(Tell(kServer).scheduler_ns(), absl::ToUnixNanos(now_));
  EXPECT_FALSE(Tell(kServer).has_trace());
  const auto order = Start(absl::Seconds(5));
  ASSERT_TRUE(order.ok());
  EXPECT_EQ(Tell(kServer).trace().trace(), order->trace());
  EXPECT_EQ(Tell(kServer).trace().left_ms(), 5000u);
  now_ += absl::Seconds(4);
  EXPECT_EQ(Tell(kWorker).trace().left_ms(), 1000u);
  now_ += absl::Seconds(1);
  EXPECT_FALSE(Tell(kServer).has_trace());
}

TEST_F(TraceDeskTest, OneAtATimeAndOfBoundedLength) {
  EXPECT_TRUE(absl::IsInvalidArgument(Start(absl::ZeroDuration()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Start(kTraceMax + absl::Milliseconds(1)).status()));
  ASSERT_TRUE(Start(absl::Seconds(5)).ok());
  const absl::Status second = Start(absl::Seconds(5)).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second));
  EXPECT_THAT(std::string(second.message()), HasSubstr("for at most 5s"));
  now_ += absl::Seconds(5);
  EXPECT_TRUE(Start(absl::Seconds(5)).ok());
}

TEST_F(TraceDeskTest, ReportsArriveOnceAndInOrder) {
  const uint64_t trace = Start(absl::Seconds(5))->trace();
  Tell(kServer);
  Tell(kWorker);
  EXPECT_THAT(Get(trace)->missing(), ElementsAre(kServer.value(), kWorker.value()));
  now_ += absl::Seconds(5);
  EXPECT_TRUE(Report(kServer, trace, 0, false).ok());
  EXPECT_TRUE(Report(kServer, trace, 0, false).ok()) << "repeated";
  EXPECT_TRUE(Report(kWorker, trace, 0, true).ok());
  auto reply = Get(trace);
  ASSERT_TRUE(reply.ok());
  EXPECT_TRUE(reply->is_over());
  EXPECT_THAT(reply->missing(), ElementsAre(kServer.value()));
  ASSERT_EQ(reply->pieces_size(), 3);
  EXPECT_EQ(reply->pieces(0).name(), "server-0");
  EXPECT_EQ(reply->pieces(1).name(), "worker-0");
  EXPECT_EQ(reply->pieces(2).name(), "scheduler");

  EXPECT_TRUE(Report(kServer, trace, 1, true).ok());
  reply = Get(trace, false, 3);
  EXPECT_THAT(reply->missing(), IsEmpty());
  ASSERT_EQ(reply->pieces_size(), 1);
  EXPECT_EQ(reply->pieces(0).number(), 1u);
  EXPECT_FALSE(reply->has_more());
}

TEST_F(TraceDeskTest, EndsWhenTold) {
  const uint64_t trace = Start(absl::Minutes(5))->trace();
  EXPECT_TRUE(thread_.on());
  Tell(kServer);
  EXPECT_FALSE(Get(trace)->is_over());
  EXPECT_TRUE(Get(trace, true)->is_over());
  EXPECT_FALSE(thread_.on());
  EXPECT_FALSE(Tell(kServer).has_trace());
  EXPECT_TRUE(Start(absl::Seconds(1)).ok());
  EXPECT_TRUE(absl::IsNotFound(Get(trace).status()));
}

TEST_F(TraceDeskTest, ADeadNodeIsNotWaitedFor) {
  const uint64_t trace = Start(absl::Seconds(5))->trace();
  Tell(kServer);
  state_.mutable_view()->mutable_nodes(0)->set_state(proto::Node::DEAD);
  EXPECT_THAT(Get(trace, true)->missing(), IsEmpty());
}

TEST_F(TraceDeskTest, StrangersAndOtherTracesAreRefused) {
  EXPECT_TRUE(absl::IsNotFound(Get(0).status()));
  EXPECT_TRUE(absl::IsNotFound(Report(kServer, 0, 0, true)));
  const uint64_t trace = Start(absl::Seconds(5))->trace();
  EXPECT_TRUE(absl::IsNotFound(Report(kServer, trace, 0, true))) << "was not told";
  Tell(kServer);
  EXPECT_TRUE(absl::IsNotFound(Report(kServer, trace + 1, 0, true)));
  EXPECT_EQ(Get(trace, true)->pieces_size(), 1) << "its own";
}

TEST_F(TraceDeskTest, KeepsABoundedNumberOfBytes) {
  const uint64_t trace = Start(absl::Seconds(5))->trace();
  Tell(kServer);
  EXPECT_TRUE(absl::IsResourceExhausted(Report(kServer, trace, 0, false, kTracePieceBytesMax + 1)));
  EXPECT_EQ(Get(trace)->refused(), 1u);
  Tell(kWorker);
  constexpr size_t kPiece = kTracePieceBytesMax - 100;
  uint32_t taken = 0;
  while (Report(kWorker, trace, taken, false, kPiece).ok()) ++taken;
  EXPECT_EQ(taken, kTraceBytesMax / (kPiece + 16));
  const auto reply = Get(trace);
  EXPECT_LE(reply->ByteSizeLong(), kTraceReplyBytesMax + 100);
  EXPECT_TRUE(reply->has_more());
}

TEST_F(TraceDeskTest, SpansPerNodeFollowFromTheirNumber) {
  EXPECT_EQ(Start(absl::Milliseconds(1))->spans_max(), kTraceSpansMax);
  for (uint64_t id = 4; id < 1004; ++id) AddNode(NodeId(id), "worker");
  now_ += absl::Seconds(1);
  EXPECT_LT(Start(absl::Milliseconds(1))->spans_max(), 10000u);
}

}  // namespace
}  // namespace covey::scheduler
