// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/updates_at_risk.h"

#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"

namespace covey::scheduler {
namespace {

constexpr NodeId kServer{2};
constexpr NodeId kOther{3};
constexpr uint32_t kTable = 1;
constexpr uint32_t kLater = 2;

class UpdatesAtRiskTest : public ::testing::Test {
 protected:
  UpdatesAtRiskTest() {
    AddTable(kTable);
    at_risk_.Start(now_);
  }

  void AddTable(uint32_t id) { state_.mutable_view()->add_tables()->set_id(id); }
  void Report(NodeId server, uint32_t table, uint64_t updates) {
    proto::ServerLoad load;
    proto::TableAsynchrony& report = *load.add_tables();
    report.set_table(table);
    report.set_updates(updates);
    at_risk_.OnLoad(server, load);
  }
  // A snapshot with `updates` of the first table is complete.
  void Save(uint64_t updates, absl::Time cut) {
    proto::NewestSnapshot& newest = *state_.record().mutable_newest_snapshot();
    newest.set_folder("snapshot-000001-e6");
    newest.add_tables(kTable);
    newest.add_updates(updates);
    newest.set_cut_unix_ms(static_cast<uint64_t>(absl::ToUnixMillis(cut + kAhead)));
  }

  static constexpr absl::Duration kAhead = absl::Hours(1000);
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  TestState state_;
  UpdatesAtRisk at_risk_{state_, kAhead};
};

TEST_F(UpdatesAtRiskTest, AllUpdatesAreWhereNothingIsSaved) {
  EXPECT_EQ(at_risk_.Count(), 0u);
  Report(kServer, kTable, 40);
  Report(kOther, kTable, 2);
  EXPECT_EQ(at_risk_.Count(), 42u);
  EXPECT_EQ(at_risk_.Age(now_ + absl::Minutes(1)), absl::ZeroDuration());
}

TEST_F(UpdatesAtRiskTest, ASnapshotSavesThoseBeforeItsCut) {
  Report(kServer, kTable, 40);
  Save(40, now_);
  now_ += absl::Seconds(3);
  EXPECT_EQ(at_risk_.Count(), 0u);
  EXPECT_EQ(at_risk_.Age(now_), absl::ZeroDuration());
  Report(kServer, kTable, 45);
  EXPECT_EQ(at_risk_.Count(), 5u);
  EXPECT_EQ(at_risk_.Age(now_), absl::Seconds(3));
}

TEST_F(UpdatesAtRiskTest, TablesCountEachForItself) {
  Save(40, now_);
  AddTable(kLater);
  Report(kServer, kTable, 30);
  Report(kOther, kLater, 7);
  EXPECT_EQ(at_risk_.Count(), 7u) << "a table that was re-initialized hides no other";
  state_.mutable_view()->mutable_tables()->RemoveLast();
  EXPECT_EQ(at_risk_.Count(), 0u) << "dropped";
}

TEST_F(UpdatesAtRiskTest, AServerThatDepartsCountsNoLonger) {
  Report(kServer, kTable, 40);
  Report(kOther, kTable, 40);
  at_risk_.OnDeparture(kServer);
  EXPECT_EQ(at_risk_.Count(), 40u);
}

TEST_F(UpdatesAtRiskTest, AJobThatContinuesCountsFromItsStart) {
  Save(40, now_);
  state_.record().mutable_newest_snapshot()->clear_cut_unix_ms();
  Report(kServer, kTable, 41);
  EXPECT_EQ(at_risk_.Count(), 1u);
  EXPECT_EQ(at_risk_.Age(now_ + absl::Seconds(5)), absl::Seconds(5));
}

}  // namespace
}  // namespace covey::scheduler
