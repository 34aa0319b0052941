// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>

#include "common/snapshot/manifest.h"
#include "common/snapshot/snapshot_reader.h"
#include "gmock/gmock.h"
#include "scheduler/snapshots/snapshots.h"
#include "scheduler/snapshots/snapshots_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Snapshots and what the store holds: at the start, by request, in the end.
class SnapshotsStoreTest : public SnapshotsTest {
 protected:
  std::vector<std::string> Folders() {
    std::vector<std::string> folders;
    const auto entries = store_.List("");
    EXPECT_TRUE(entries.ok()) << entries.status();
    for (const FolderEntry& entry : *entries) folders.push_back(entry.name);
    return folders;
  }
  void AddComplete(uint64_t id) { EXPECT_TRUE(SmallSnapshot::Make(id, 7).WriteTo(store_).ok()); }
  void AddIncomplete(uint64_t id) {
    store_.AddFile(SnapshotFolderName(id, 7) + "/part-2-1.cvp", "x");
  }
  void MakeOne() {
    PassUntilOrdered();
    StorePart(0);
    StorePart(1);
    EXPECT_FALSE(is_ordered());
  }
};

TEST_F(SnapshotsStoreTest, LooksAtTheStoreFirst) {
  AddComplete(5);
  AddComplete(9);
  AddIncomplete(8);
  AddIncomplete(11);
  store_.AddFile("notes.txt", "of the user");
  Start();
  EXPECT_THAT(Folders(), ElementsAre("notes.txt", "snapshot-000005-e7", "snapshot-000009-e7",
                                     "snapshot-000011-e7"))
      << "an incomplete one goes once a newer one is complete; the last may be in the making";
  const auto id = machine_->Create(now_, "by a user");
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(*id, 12u);
}

TEST_F(SnapshotsStoreTest, NoSnapshotIsBegunBeforeTheStoreHasAnswered) {
  machine_.emplace(options_, state_, dispatcher_);
  machine_->Start(now_);
  now_ += absl::Hours(1);
  Beat();
  Beat();
  machine_->Tick(now_);
  EXPECT_FALSE(is_ordered());
  AnswerStore();
  machine_->Tick(now_);
  EXPECT_TRUE(is_ordered());
}

TEST_F(SnapshotsStoreTest, RemembersARequestThatComesBeforeTheStoreHasAnswered) {
  options_.every = absl::InfiniteDuration();
  machine_.emplace(options_, state_, dispatcher_);
  machine_->Start(now_);
  Beat();
  Beat();
  const auto id = machine_->Create(now_, "by ada");
  ASSERT_TRUE(id.ok());
  machine_->Tick(now_);
  EXPECT_FALSE(is_ordered());
  AnswerStore();
  machine_->Tick(now_);
  ASSERT_TRUE(is_ordered());
  EXPECT_EQ(order().id(), *id);
  EXPECT_THAT(state_.News(), HasSubstr("by ada"));
}

TEST_F(SnapshotsStoreTest, ARequestWhoseIdIsInTheStoreLeadsToAnotherId) {
  AddComplete(5);
  machine_.emplace(options_, state_, dispatcher_);
  machine_->Start(now_);
  Beat();
  Beat();
  const auto id = machine_->Create(now_, "by ada");
  ASSERT_TRUE(id.ok());
  EXPECT_EQ(*id, 1u);
  AnswerStore();
  EXPECT_EQ(Status().id(), 1u);
  EXPECT_EQ(Status().state(), proto::SnapshotStatus::FAILED);
  EXPECT_EQ(Status().tried_again_as(), 6u);
  machine_->Tick(now_);
  EXPECT_EQ(order().id(), 6u);
}

TEST_F(SnapshotsStoreTest, AnOrderHasNoReasonOfAnAttemptBefore) {
  options_.deadline = absl::Minutes(1);
  Start();
  machine_->Tick(now_ += absl::Minutes(10));
  machine_->Tick(now_ += absl::Minutes(2));
  EXPECT_EQ(Status().id(), 1u);
  EXPECT_EQ(Status().state(), proto::SnapshotStatus::FAILED);
  EXPECT_THAT(Status().reason(), HasSubstr("not all workers"));
  Beat();
  Beat();
  machine_->Tick(now_ += absl::Minutes(10));
  ASSERT_EQ(order().id(), 1u);
  EXPECT_EQ(Status().id(), 1u);
  EXPECT_EQ(Status().state(), proto::SnapshotStatus::UNDER_WAY);
  EXPECT_EQ(Status().reason(), "");
}

TEST_F(SnapshotsStoreTest, KeepsTheNewestOnesWhole) {
  options_.kept = 2;
  AddComplete(1);
  AddComplete(2);
  AddComplete(3);
  Start();
  EXPECT_THAT(Folders(), ElementsAre("snapshot-000002-e7", "snapshot-000003-e7"));
  for (int made = 0; made < 3; ++made) {
    MakeOne();
    const std::vector<std::string> folders = Folders();
    EXPECT_THAT(folders, SizeIs(2));
    for (const std::string& folder : folders) {
      const auto reader = SnapshotReader::Open(store_, folder);
      ASSERT_TRUE(reader.ok()) << reader.status();
      EXPECT_TRUE(reader->Verify([](uint64_t, uint64_t) { return absl::OkStatus(); }).ok());
    }
  }
  EXPECT_THAT(Folders().back(), HasSubstr("snapshot-000006-"));
}

TEST_F(SnapshotsStoreTest, AFailedSnapshotTakesNoOtherOneWithIt) {
  options_.kept = 1;
  AddComplete(1);
  Start();
  Pass(absl::Minutes(10));
  StorePart(0);
  FailPart("no room on the disk");
  EXPECT_THAT(Folders(), ElementsAre("snapshot-000001-e7"));
}

TEST_F(SnapshotsStoreTest, KeepsTheOneThatTheJobContinues) {
  options_.kept = 1;
  for (uint64_t id = 1; id <= 3; ++id) AddComplete(id);
  state_.record().mutable_restore()->set_folder("snapshot-000001-e7");
  Start();
  EXPECT_THAT(Folders(), ElementsAre("snapshot-000001-e7", "snapshot-000003-e7"));
}

TEST_F(SnapshotsStoreTest, KeepsThoseFromWhichTablesAndShardsBegan) {
  options_.kept = 1;
  for (uint64_t id = 1; id <= 3; ++id) AddComplete(id);
  proto::Table& table = *state_.mutable_view()->mutable_tables(0);
  table.mutable_origin()->set_folder("snapshot-000001-e7");
  table.mutable_shards(1)->set_origin("snapshot-000002-e7");
  Start();
  EXPECT_THAT(Folders(),
              ElementsAre("snapshot-000001-e7", "snapshot-000002-e7", "snapshot-000003-e7"));
  table.clear_origin();
  table.mutable_shards(1)->clear_origin();
  MakeOne();
  EXPECT_THAT(Folders(), SizeIs(1));
}

TEST_F(SnapshotsStoreTest, IsMadeOnRequest) {
  options_.every = absl::InfiniteDuration();
  Start();
  Pass(absl::Seconds(2));
  EXPECT_FALSE(is_ordered());
  const auto id = machine_->Create(now_, "by ada");
  ASSERT_TRUE(id.ok());
  machine_->Tick(now_);
  ASSERT_TRUE(is_ordered());
  EXPECT_EQ(order().id(), *id);
  EXPECT_THAT(state_.News(), HasSubstr("by ada"));
  const auto again = machine_->Create(now_, "by ada");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, *id) << "one at a time";
}

TEST_F(SnapshotsStoreTest, NeedsAStore) {
  options_.has_store = false;
  Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(machine_->Create(now_, "by ada").status()));
  Pass(absl::Minutes(11));
  EXPECT_FALSE(is_ordered());
}

TEST_F(SnapshotsStoreTest, ARestartWithdrawsTheOrder) {
  state_.mutable_view()->mutable_snapshot()->set_id(3);
  state_.mutable_view()->mutable_snapshot()->set_folder("snapshot-000003-e7");
  state_.record().set_next_snapshot(4);
  Start();
  EXPECT_FALSE(is_ordered());
  EXPECT_THAT(state_.News(), HasSubstr("snapshot 3 failed: the scheduler has restarted"));
  MakeOne();
  EXPECT_THAT(Folders().back(), HasSubstr("snapshot-000004-"));
}

TEST_F(SnapshotsStoreTest, TheLastStateIsSavedWhenTheJobCloses) {
  options_.every = absl::InfiniteDuration();
  Start();
  Pass(absl::Seconds(2));
  state_.mutable_view()->mutable_closing();
  Pass(absl::Milliseconds(100));
  ASSERT_TRUE(is_ordered());
  const std::string last = folder();
  StorePart(0);
  StorePart(1);
  EXPECT_EQ(state_.view().closing().snapshot(), last);
  Pass(absl::Minutes(1));
  EXPECT_FALSE(is_ordered()) << "one is enough";
}

}  // namespace
}  // namespace covey::scheduler
