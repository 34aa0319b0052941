// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/snapshots.h"

#include "common/snapshot/manifest.h"
#include "common/snapshot/snapshot_reader.h"
#include "gmock/gmock.h"
#include "scheduler/snapshots/snapshots_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(SnapshotsTest, OrdersByTimeAtAStepThatLiesAhead) {
  Start();
  Pass(absl::Minutes(10) - absl::Milliseconds(100));
  EXPECT_FALSE(is_ordered());
  Pass(absl::Milliseconds(100));
  ASSERT_TRUE(is_ordered());
  EXPECT_EQ(order().id(), 1u);
  EXPECT_EQ(order().epoch(), state_.epoch().value());
  EXPECT_EQ(folder(), SnapshotFolderName(1, order().epoch()));
  ASSERT_EQ(order().groups_size(), 1);
  EXPECT_EQ(order().groups(0).group(), 1u);
  EXPECT_EQ(lead(), 15u) << "1.5 s";
  EXPECT_THAT(state_.News(), AllOf(HasSubstr("snapshot 1 ordered"), HasSubstr("6015")));
  EXPECT_EQ(Status().state(), proto::SnapshotStatus::UNDER_WAY);
  EXPECT_EQ(Status().shards(), 3u);
}

TEST_F(SnapshotsTest, OrdersByExamples) {
  options_.every = absl::InfiniteDuration();
  options_.every_samples = 4000;
  Start();
  Pass(absl::Seconds(49));
  EXPECT_FALSE(is_ordered());
  Pass(absl::Seconds(2));
  ASSERT_TRUE(is_ordered());
  StorePart(0);
  StorePart(1);
  EXPECT_FALSE(is_ordered());
  Pass(absl::Seconds(48));
  EXPECT_FALSE(is_ordered());
  Pass(absl::Seconds(2));
  EXPECT_TRUE(is_ordered());
}

TEST_F(SnapshotsTest, AnotherScheduleHoldsFromTheLastSnapshotOn) {
  Start();
  Pass(absl::Minutes(2));
  // The machine takes nothing else from these.
  SnapshotsOptions next{.has_store = false, .every = absl::Minutes(3)};
  machine_->SetSchedule(next);
  Pass(absl::Minutes(1) - absl::Milliseconds(100));
  EXPECT_FALSE(is_ordered());
  Pass(absl::Milliseconds(100));
  EXPECT_TRUE(is_ordered());
  StorePart(0);
  StorePart(1);
  ASSERT_FALSE(is_ordered());
  next.every = absl::InfiniteDuration();
  next.every_samples = 800;
  machine_->SetSchedule(next);
  Pass(absl::Seconds(12));
  EXPECT_TRUE(is_ordered());
}

TEST_F(SnapshotsTest, WaitsForAFlushOfErrorFeedbackUpToTheDeadline) {
  options_.deadline = absl::Minutes(1);
  proto::ClusterView& view = *state_.record().mutable_view();
  view.set_feedback_flush_steps(10000);
  for (proto::Table& table : *view.mutable_tables()) {
    table.mutable_spec()->set_gradient_format(proto::WIRE_INT8_BLOCK);
    table.mutable_spec()->mutable_contract()->Clear();
    table.mutable_spec()->mutable_contract()->set_kind(proto::Contract::BSP);
    table.clear_contract();
  }
  Start();
  Pass(absl::Minutes(10));
  ASSERT_TRUE(is_ordered());
  EXPECT_EQ(order().groups(0).step(), 10000u);
  Pass(absl::Seconds(59));
  EXPECT_EQ(order().groups(0).step(), 10000u);
  state_.News();
  Pass(absl::Seconds(2));
  EXPECT_THAT(state_.News(), AllOf(HasSubstr("error feedback is flushed came within 1m"),
                                   HasSubstr("--feedback-flush-steps")));
  ASSERT_TRUE(is_ordered());
  EXPECT_LT(lead(), 50u);
  StorePart(0);
  StorePart(1);
  EXPECT_EQ(Status().state(), proto::SnapshotStatus::COMPLETE);

  // The next one waits again.
  PassUntilOrdered();
  EXPECT_EQ(order().groups(0).step(), 20000u);
}

TEST_F(SnapshotsTest, PublishesTheManifestWhenAllShardsAreStored) {
  options_.wall_clock_ahead = absl::Hours(24 * 365 * 50);
  Start();
  Pass(absl::Minutes(10));
  const absl::Time ordered = now_;
  const std::string made = folder();
  StorePart(0);
  EXPECT_EQ(Status().shards_written(), 1u);
  machine_->OnReport(now_, ReportOf(0));
  EXPECT_EQ(Status().shards_written(), 1u) << "a repeated report";
  EXPECT_EQ(SnapshotReader::Open(store_, made).status().code(), absl::StatusCode::kNotFound);
  Pass(absl::Seconds(1));
  StorePart(1);
  EXPECT_THAT(machine_->part_times().counts(), ElementsAre(1, 0, 2, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(machine_->part_times().sum(), absl::Seconds(2)) << "of two shards";
  EXPECT_FALSE(is_ordered());
  EXPECT_THAT(state_.News(), HasSubstr("snapshot 1 is complete"));
  EXPECT_EQ(Status().state(), proto::SnapshotStatus::COMPLETE);
  EXPECT_EQ(Status().took_ms(), 1000u);

  const auto reader = SnapshotReader::Open(store_, made);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_TRUE(reader->Verify([](uint64_t, uint64_t) { return absl::OkStatus(); }).ok());
  EXPECT_EQ(reader->manifest().groups(0).step(), 6015u);
  EXPECT_EQ(absl::FromUnixMillis(static_cast<int64_t>(reader->manifest().ordered_unix_ms())),
            ordered + options_.wall_clock_ahead);
  EXPECT_FALSE(reader->manifest().state().view().has_snapshot());
  EXPECT_EQ(Status().bytes(),
            reader->manifest().files(0).bytes() + reader->manifest().files(1).bytes());

  Pass(absl::Minutes(10) - absl::Seconds(2));
  EXPECT_FALSE(is_ordered());
  Pass(absl::Seconds(2));
  EXPECT_EQ(order().id(), 2u);
}

TEST_F(SnapshotsTest, SaysWhenAllGroupsHavePassedTheirSteps) {
  Start();
  Pass(absl::Minutes(10));
  Pass(absl::Milliseconds(1400));
  EXPECT_FALSE(order().passed());
  Pass(absl::Milliseconds(100));
  EXPECT_TRUE(order().passed());
  EXPECT_EQ(order().id(), 1u);
}

TEST_F(SnapshotsTest, TriesAgainWithTwiceTheLead) {
  Start();
  Pass(absl::Minutes(10));
  const std::string withdrawn = folder();
  StorePart(0);
  state_.News();
  FailPart("table 1 shard 1: a later push is in its content");
  EXPECT_FALSE(is_ordered());
  EXPECT_THAT(state_.News(), AllOf(HasSubstr("snapshot 1 failed, to be tried again"),
                                   HasSubstr("a later push is in its content")));
  EXPECT_EQ(Status().state(), proto::SnapshotStatus::FAILED);
  EXPECT_EQ(Status().tried_again_as(), 2u);
  EXPECT_TRUE(absl::IsNotFound(store_.List(withdrawn).status()));

  Pass(absl::Milliseconds(400));
  EXPECT_FALSE(is_ordered());
  for (const uint64_t lead_of_attempt : {30u, 60u, 120u}) {
    PassUntilOrdered();
    EXPECT_EQ(lead(), lead_of_attempt);
    state_.News();
    FailPart("a later push is in its content");
  }
  EXPECT_THAT(state_.News(), HasSubstr("snapshot 4 failed: ")) << "the last attempt";
  const absl::Time failed = now_;
  PassUntilOrdered();
  EXPECT_GT(now_ - failed, absl::Minutes(9)) << "the next one comes with the next interval";
  EXPECT_EQ(order().id(), 5u);
  EXPECT_EQ(lead(), 15u);
}

TEST_F(SnapshotsTest, IgnoresReportsOfAnotherOrder) {
  Start();
  Pass(absl::Minutes(10));
  const proto::SnapshotReportRequest late = ReportOf(0);
  FailPart("a later push is in its content");
  Pass(absl::Milliseconds(500));
  ASSERT_EQ(order().id(), 2u);
  machine_->OnReport(now_, late);
  EXPECT_EQ(Status().shards_written(), 0u);
  proto::SnapshotReportRequest failure;
  failure.set_snapshot(1);
  failure.set_failure("no room on the disk");
  machine_->OnReport(now_, failure);
  EXPECT_TRUE(is_ordered());
}

TEST_F(SnapshotsTest, GivesUpAtTheDeadline) {
  options_.deadline = absl::Minutes(1);
  Start();
  Pass(absl::Minutes(10));
  StorePart(0);
  Pass(absl::Minutes(1));
  EXPECT_TRUE(is_ordered());
  EXPECT_EQ(machine_->NextTick(), now_);
  state_.News();
  Pass(absl::Milliseconds(100));
  EXPECT_FALSE(is_ordered());
  EXPECT_THAT(state_.News(), AllOf(HasSubstr("snapshot 1 failed: it was not complete after 1m"),
                                   HasSubstr("1 of 3 shards")));
  Pass(absl::Minutes(8));
  EXPECT_FALSE(is_ordered());
}

TEST_F(SnapshotsTest, TriesAgainWhenTheStoreDoesNotTakeTheManifest) {
  Start();
  Pass(absl::Minutes(10));
  StorePart(0);
  const SmallSnapshot parts = SmallSnapshot::Make(order().id(), order().epoch());
  ASSERT_TRUE(parts.WritePart(parts.files[1], store_).ok());
  store_.PlanFault(store_.operations() + 2, MemoryFolder::Fault::kNoSpace);
  machine_->OnReport(now_, ReportOf(1));
  AnswerStore();
  EXPECT_FALSE(is_ordered());
  EXPECT_THAT(state_.News(), AllOf(HasSubstr("snapshot 1 failed, to be tried again"),
                                   HasSubstr("No space left on device")));
  Pass(absl::Milliseconds(500));
  ASSERT_EQ(order().id(), 2u);
  const std::string made = folder();
  StorePart(0);
  StorePart(1);
  EXPECT_TRUE(SnapshotReader::Open(store_, made).ok());
}

// What changes while an order is in the view, and the reason that users read.
struct Change {
  const char* name;
  void (*apply)(Transaction& change, const proto::ClusterView& view);
  const char* reason;
};
class SnapshotsChangeTest : public SnapshotsTest, public ::testing::WithParamInterface<Change> {};

TEST_P(SnapshotsChangeTest, WithdrawsAnOrderThatNoLongerHolds) {
  Start();
  Pass(absl::Minutes(10));
  ASSERT_TRUE(is_ordered());
  {
    Transaction change(state_);
    GetParam().apply(change, state_.view());
    change.Add(TableDropped{});
    change.Commit();
  }
  machine_->Tick(now_);
  EXPECT_FALSE(is_ordered());
  EXPECT_THAT(state_.News(), HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Changes, SnapshotsChangeTest,
    ::testing::Values(Change{"Members",
                             [](Transaction& change, const proto::ClusterView& view) {
                               change.Edit(view.groups(0)).set_generation(2);
                             },
                             "the members of group 1 have changed"},
                      Change{"NewGroup",
                             [](Transaction& change, const proto::ClusterView&) {
                               proto::Group& group = *change.EditView().add_groups();
                               group.set_id(2);
                               group.set_state(proto::Group::ACTIVE);
                             },
                             "group 2 has formed"},
                      Change{"EndOfGroup",
                             [](Transaction& change, const proto::ClusterView& view) {
                               change.Edit(view.groups(0)).set_state(proto::Group::DONE);
                             },
                             "a group has ended"},
                      Change{"Chain",
                             [](Transaction& change, const proto::ClusterView& view) {
                               change.EditChain(view.tables(0).shards(1));
                             },
                             "servers of table 'weights' have changed"},
                      Change{
                          "Contract",
                          [](Transaction& change, const proto::ClusterView& view) {
                            change.Edit(view.tables(1)).set_contract_epoch(change.epoch().value());
                          },
                          "the contract of table 'bias' has changed"},
                      Change{"Table",
                             [](Transaction& change, const proto::ClusterView&) {
                               change.EditView().mutable_tables()->RemoveLast();
                             },
                             "a table was created, initialized or dropped"}),
    [](const auto& test) { return test.param.name; });

TEST_F(SnapshotsTest, WaitsUntilChainsAreComplete) {
  state_.mutable_view()->mutable_tables(0)->mutable_shards(0)->mutable_chain(0)->set_joining(true);
  Start();
  Pass(absl::Minutes(10) + absl::Seconds(5));
  EXPECT_FALSE(is_ordered());
  state_.mutable_view()->mutable_tables(0)->mutable_shards(0)->mutable_chain(0)->set_joining(false);
  Pass(absl::Milliseconds(100));
  EXPECT_TRUE(is_ordered());
}

TEST_F(SnapshotsTest, WaitsUntilWorkersHaveReported) {
  Start();
  machine_->OnDeparture(kWorker);
  now_ += absl::Minutes(10);
  machine_->Tick(now_);
  Beat();
  machine_->Tick(now_ += absl::Milliseconds(100));
  EXPECT_FALSE(is_ordered());
  Beat();
  machine_->Tick(now_ += absl::Milliseconds(100));
  EXPECT_TRUE(is_ordered());
}

// A table of the job that waits for its initial values, besides those that are served.
proto::Table& AddWaitingTable(TestState& state) {
  proto::Table& table = *state.mutable_view()->add_tables();
  table = state.view().tables(0);
  table.set_id(77);
  table.mutable_spec()->set_name("waits");
  table.mutable_spec()->mutable_initializer()->set_kind(proto::Initializer::GIVEN);
  table.mutable_initialization()->set_epoch(2);
  return table;
}

TEST_F(SnapshotsTest, LeavesOutTablesThatWaitForTheirInitialValues) {
  AddWaitingTable(state_);
  Start();
  PassUntilOrdered();
  EXPECT_EQ(Status().shards(), 3u);
  const std::string made = folder();
  StorePart(0);
  StorePart(1);
  EXPECT_EQ(Status().state(), proto::SnapshotStatus::COMPLETE);
  const auto reader = SnapshotReader::Open(store_, made);
  ASSERT_TRUE(reader.ok()) << reader.status();
  for (const proto::Table& table : reader->manifest().state().view().tables()) {
    EXPECT_NE(table.id(), 77u);
  }
  for (const uint32_t table : state_.record().newest_snapshot().tables()) EXPECT_NE(table, 77u);
}

TEST_F(SnapshotsTest, AJobClosesWithATableThatWaitsForItsInitialValues) {
  AddWaitingTable(state_);
  Start();
  Pass(absl::Seconds(10));
  state_.mutable_view()->mutable_closing();
  Pass(absl::Seconds(1));
  ASSERT_TRUE(is_ordered());
  StorePart(0);
  StorePart(1);
  EXPECT_NE(state_.view().closing().snapshot(), "");
}

TEST_F(SnapshotsTest, TriesAgainWhenATableGetsItsInitialValuesMeanwhile) {
  AddWaitingTable(state_);
  Start();
  PassUntilOrdered();
  state_.mutable_view()->mutable_tables()->rbegin()->clear_initialization();
  Pass(absl::Milliseconds(100));
  EXPECT_FALSE(is_ordered());
  EXPECT_THAT(Status().reason(), HasSubstr("initialized"));
  PassUntilOrdered();
  EXPECT_GT(Status().shards(), 3u);
}

TEST_F(SnapshotsTest, WaitsWhileNoTableHasItsInitialValues) {
  for (proto::Table& table : *state_.mutable_view()->mutable_tables()) {
    table.mutable_initialization()->set_epoch(2);
  }
  Start();
  Pass(absl::Minutes(25));
  EXPECT_EQ(Status().id(), 0u) << "none is due";
  ASSERT_TRUE(machine_->Create(now_, "asked").ok());
  Pass(absl::Seconds(30));
  EXPECT_FALSE(is_ordered());
  Pass(options_.deadline);
  EXPECT_THAT(Status().reason(), HasSubstr("no table has its initial values"));
  state_.mutable_view()->mutable_tables(0)->clear_initialization();
  ASSERT_TRUE(machine_->Create(now_, "asked").ok());
  PassUntilOrdered();
}

TEST_F(SnapshotsTest, WaitsUntilTheTablesThatItContinuesArePlaced) {
  state_.record().mutable_restore()->set_folder("snapshot-000001-e6");
  Start();
  ASSERT_TRUE(machine_->Create(now_, "asked").ok());
  Pass(absl::Seconds(30));
  EXPECT_FALSE(is_ordered());
  Pass(options_.deadline);
  EXPECT_THAT(Status().reason(), HasSubstr("the tables of snapshot-000001-e6"));
  state_.record().clear_restore();
  ASSERT_TRUE(machine_->Create(now_, "asked").ok());
  PassUntilOrdered();
}

TEST_F(SnapshotsTest, MakesNoneOfNothing) {
  state_.mutable_view()->clear_tables();
  Start();
  Pass(absl::Minutes(11));
  EXPECT_FALSE(is_ordered());
  EXPECT_THAT(state_.News(), IsEmpty());
}

}  // namespace
}  // namespace covey::scheduler
