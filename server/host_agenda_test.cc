// SPDX-License-Identifier: Apache-2.0
#include "server/host_agenda.h"

#include <vector>

#include "gtest/gtest.h"

namespace covey::server {
namespace {

constexpr ShardId kFirst{TableId(1), ShardIndex(0)};
constexpr ShardId kSecond{TableId(1), ShardIndex(1)};
const absl::Time kNow = absl::UnixEpoch();

proto::ReplicaReport ReportOf(uint32_t shard) {
  proto::ReplicaReport report;
  report.set_shard(shard);
  return report;
}

TEST(HostAgenda, TheEarliestDeadlineOfARoundCounts) {
  HostAgenda agenda;
  EXPECT_EQ(agenda.next_deadline(), absl::InfiniteFuture());
  agenda.Keep(kFirst, {.next_wake = kNow + absl::Seconds(2)});
  agenda.Keep(kSecond, {.next_wake = kNow + absl::Seconds(1)});
  agenda.Keep(kFirst, {.next_wake = kNow + absl::Seconds(3)});
  EXPECT_EQ(agenda.next_deadline(), kNow + absl::Seconds(1));
  agenda.BeginRound();
  agenda.Keep(kFirst, {.next_wake = kNow + absl::Seconds(3)});
  EXPECT_EQ(agenda.next_deadline(), kNow + absl::Seconds(3));
}

TEST(HostAgenda, AShardIsToBeOpenedUntilACallSaysThatItIsOpen) {
  HostAgenda agenda;
  EXPECT_FALSE(agenda.next_to_open().has_value());
  agenda.Keep(kSecond, {.needs_open = true});
  agenda.Keep(kFirst, {.needs_open = true});
  EXPECT_EQ(agenda.next_to_open(), kFirst);
  agenda.Keep(kFirst, {});
  EXPECT_EQ(agenda.next_to_open(), kSecond);
  agenda.BeginRound();
  EXPECT_FALSE(agenda.next_to_open().has_value());
}

// A removed host may have the same shard as a new host of another generation.
TEST(HostAgenda, OnlyReportsOfAHostThatIsGoneCount) {
  HostAgenda agenda;
  agenda.Keep(kFirst, {.needs_open = true, .reports = {ReportOf(1)}});
  agenda.KeepReports({.next_wake = kNow, .reports = {ReportOf(2)}});
  EXPECT_EQ(agenda.next_to_open(), kFirst);
  EXPECT_EQ(agenda.next_deadline(), absl::InfiniteFuture());
  Outbox outbox;
  agenda.SendReports({NodeId(7), 0}, outbox);
  agenda.SendReports({NodeId(7), 0}, outbox);
  const std::vector<Message> sent = outbox.TakeMessages();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].to().node, NodeId(7));
  ASSERT_EQ(sent[0].envelope.replica_report_request().reports_size(), 2);
  EXPECT_EQ(sent[0].envelope.replica_report_request().reports(1).shard(), 2u);
}

}  // namespace
}  // namespace covey::server
