// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/restored_job.h"

#include <string>

#include "common/cluster/view.h"
#include "common/snapshot/testing/small_snapshot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint64_t kId = 3;

proto::SnapshotManifest Manifest() { return SmallSnapshot::Make(kId, 42).manifest; }

proto::LogRecord Restored(const proto::SnapshotManifest& manifest) {
  const auto record = RestoredJob({.name = "small"}, manifest);
  EXPECT_TRUE(record.ok()) << record.status();
  return record.value_or(proto::LogRecord());
}

TEST(RestoredJobTest, BeginsWithoutNodesGroupsAndTables) {
  const proto::LogRecord record = Restored(Manifest());
  const proto::ClusterView& view = record.view();
  EXPECT_EQ(view.job_name(), "small");
  EXPECT_EQ(view.job(), JobFingerprint("small"));
  EXPECT_TRUE(view.nodes().empty());
  EXPECT_TRUE(view.groups().empty());
  EXPECT_TRUE(view.tables().empty());
  EXPECT_FALSE(view.has_snapshot());
  EXPECT_TRUE(record.barriers().empty());
  EXPECT_TRUE(ClusterView::Make(view).ok());
}

TEST(RestoredJobTest, TablesAreToBePlacedWithTheirRanges) {
  const proto::SnapshotManifest manifest = Manifest();
  const proto::Restore restore = Restored(manifest).restore();
  EXPECT_EQ(restore.folder(), "snapshot-000003-e42");
  ASSERT_EQ(restore.tables_size(), 2);
  for (int i = 0; i < 2; ++i) {
    proto::Table expected = manifest.state().view().tables(i);
    for (proto::Shard& shard : *expected.mutable_shards()) shard.clear_chain();
    EXPECT_EQ(restore.tables(i).SerializeAsString(), expected.SerializeAsString());
  }
}

// Whatever the scheduler that continues it is told.
TEST(RestoredJobTest, FlushesErrorFeedbackAtTheStepsOfTheEarlierRun) {
  proto::SnapshotManifest manifest = Manifest();
  manifest.mutable_state()->mutable_view()->set_feedback_flush_steps(40);
  const auto record = RestoredJob({.name = "small", .feedback_flush_steps = 100}, manifest);
  ASSERT_TRUE(record.ok()) << record.status();
  EXPECT_EQ(record->view().feedback_flush_steps(), 40u);
}

// The earlier run went on after the cut, so it has taken more numbers than the manifest knows.
TEST(RestoredJobTest, NumbersBeginFarAboveThoseOfTheEarlierRun) {
  const proto::LogRecord record = Restored(Manifest());
  EXPECT_GT(record.view().epoch(), uint64_t{42} + 1'000'000'000);
  EXPECT_GT(record.next_node(), uint64_t{5} + 1'000'000'000);
  EXPECT_GT(record.next_table(), 3u + 100'000);
  EXPECT_GT(record.first_group(), 1u + 100'000);
  EXPECT_EQ(record.next_snapshot(), kId + 1);
}

TEST(RestoredJobTest, ARestoredJobCanBeRestoredAgain) {
  const proto::LogRecord first = Restored(Manifest());
  proto::SnapshotManifest manifest = Manifest();
  *manifest.mutable_state() = first;
  const proto::LogRecord second = Restored(manifest);
  EXPECT_GT(second.view().epoch(), first.view().epoch());
  EXPECT_GT(second.next_node(), first.next_node());
  EXPECT_GT(second.next_table(), first.next_table());
  EXPECT_GT(second.first_group(), first.first_group());
  EXPECT_EQ(second.steps_before(), first.steps_before());
}

TEST(RestoredJobTest, GroupsCountTheirStepsOn) {
  EXPECT_EQ(Restored(Manifest()).steps_before(), 300u);
  proto::SnapshotManifest manifest = Manifest();
  manifest.mutable_shards(0)->set_last_step(400);
  EXPECT_EQ(Restored(manifest).steps_before(), 400u) << "of a group that had ended";
  manifest.mutable_state()->set_steps_before(500);
  EXPECT_EQ(Restored(manifest).steps_before(), 500u) << "of a run before the earlier one";
}

TEST(RestoredJobTest, AClockOfALocalTableCountsRounds) {
  proto::SnapshotManifest manifest = Manifest();
  proto::Contract& contract =
      *manifest.mutable_state()->mutable_view()->mutable_tables(0)->mutable_contract();
  contract.set_kind(proto::Contract::LOCAL);
  contract.set_local_steps(8);
  manifest.mutable_shards(0)->set_last_step(100);
  EXPECT_EQ(Restored(manifest).steps_before(), 800u);
}

TEST(RestoredJobTest, TrainingDataGoesOnAfterTheCut) {
  const proto::SnapshotManifest manifest = Manifest();
  const proto::LogRecord record = Restored(manifest);
  ASSERT_EQ(record.work_size(), 1);
  EXPECT_EQ(record.work(0).SerializeAsString(), manifest.state().work(0).SerializeAsString());
}

TEST(RestoredJobTest, RemembersWhichUpdatesItContinues) {
  const proto::SnapshotManifest manifest = Manifest();
  const proto::NewestSnapshot newest = Restored(manifest).newest_snapshot();
  EXPECT_EQ(newest.folder(), manifest.folder());
  ASSERT_EQ(newest.tables_size(), 2);
  ASSERT_EQ(newest.updates_size(), 2);
  EXPECT_EQ(newest.updates(0), manifest.shards(0).version() + manifest.shards(1).version());
  EXPECT_EQ(newest.updates(1), manifest.shards(2).version());
  EXPECT_EQ(newest.cut_unix_ms(), 0u) << "of an earlier run";
  ASSERT_EQ(newest.groups_size(), manifest.groups_size());
  for (int i = 0; i < newest.groups_size(); ++i) {
    EXPECT_EQ(newest.groups(i).SerializeAsString(), manifest.groups(i).SerializeAsString());
  }
}

TEST(RestoredJobTest, RefusesTheSnapshotOfAnotherJob) {
  const absl::Status status = RestoredJob({.name = "large"}, Manifest()).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("'small'"), HasSubstr("'large'"), HasSubstr("--job small")));
}

}  // namespace
}  // namespace covey::scheduler
