// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot_reports.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

class SnapshotReportsTest : public ::testing::Test {
 protected:
  void Add(uint64_t snapshot) {
    proto::SnapshotReportRequest report;
    report.set_snapshot(snapshot);
    reports_.Add(kStart, report);
  }
  std::vector<Message> Wake(absl::Duration after) {
    reports_.Wake(kStart + after, outbox_);
    return outbox_.TakeMessages();
  }
  static Message ReplyTo(const Message& request, const absl::Status& status = absl::OkStatus()) {
    Message reply = MakeReply(request);
    SetStatus(status, reply);
    reply.envelope.mutable_snapshot_report_reply();
    return reply;
  }
  void FollowView(uint64_t epoch, uint64_t ordered) {
    proto::ClusterView view;
    view.set_epoch(epoch);
    if (ordered != 0) view.mutable_snapshot()->set_id(ordered);
    reports_.FollowView(**ClusterView::Make(view));
  }

  uint64_t next_request_id_ = 50;
  SnapshotReports reports_{next_request_id_};
  Outbox outbox_;
};

TEST_F(SnapshotReportsTest, SendsAtOnceAndRepeatsUntilAnswered) {
  EXPECT_EQ(reports_.NextWake(), absl::InfiniteFuture());
  Add(3);
  EXPECT_EQ(reports_.NextWake(), kStart);
  const auto sent = Wake(absl::ZeroDuration());
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].to(), Address({kSchedulerNode, 0}));
  EXPECT_EQ(sent[0].envelope.snapshot_report_request().snapshot(), 3u);
  EXPECT_THAT(Wake(absl::Milliseconds(499)), IsEmpty());
  EXPECT_EQ(reports_.NextWake(), kStart + absl::Milliseconds(500));
  const auto again = Wake(absl::Milliseconds(500));
  ASSERT_THAT(again, SizeIs(1));
  EXPECT_EQ(again[0].envelope.header().request_id(), sent[0].envelope.header().request_id());

  reports_.OnReply(ReplyTo(again[0], absl::UnavailableError("standby")));
  EXPECT_THAT(Wake(absl::Seconds(1)), SizeIs(1)) << "an error is no answer";
  reports_.OnReply(ReplyTo(again[0]));
  EXPECT_THAT(Wake(absl::Seconds(2)), IsEmpty());
  EXPECT_EQ(reports_.NextWake(), absl::InfiniteFuture());
}

TEST_F(SnapshotReportsTest, AnAnswerEndsOneReport) {
  Add(3);
  Add(3);
  const auto sent = Wake(absl::ZeroDuration());
  ASSERT_THAT(sent, SizeIs(2));
  reports_.OnReply(ReplyTo(sent[0]));
  const auto rest = Wake(absl::Seconds(1));
  ASSERT_THAT(rest, SizeIs(1));
  EXPECT_EQ(rest[0].envelope.header().request_id(), sent[1].envelope.header().request_id());
}

TEST_F(SnapshotReportsTest, EndsWhenTheOrderHasEnded) {
  Add(3);
  FollowView(5, 3);
  EXPECT_THAT(Wake(absl::ZeroDuration()), SizeIs(1));
  Add(4);
  FollowView(6, 4);
  EXPECT_THAT(Wake(absl::Seconds(1)), SizeIs(1));
  FollowView(7, 0);
  EXPECT_THAT(Wake(absl::Seconds(2)), IsEmpty());
}

}  // namespace
}  // namespace covey::server
