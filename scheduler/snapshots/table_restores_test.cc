// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/table_restores.h"

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/cluster/view.h"
#include "common/snapshot/testing/small_snapshot.h"
#include "common/store/store_requests.h"
#include "common/store/testing/memory_folder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using State = proto::RestoreStatus;

constexpr char kFolder[] = "snapshot-000003-e42";

// A job of two servers, and a store with SmallSnapshot: "weights" in two shards with one replica,
// "bias" in one with two.
class TableRestoresTest : public ::testing::Test {
 protected:
  TableRestoresTest() {
    state_.record().set_next_table(5);
    state_.mutable_view()->set_epoch(100);
    for (uint64_t id : {2, 3}) AddServer(id);
    proto::ClusterView& before = *snapshot_.manifest.mutable_state()->mutable_view();
    before.mutable_tables(1)->mutable_spec()->set_durability(proto::REPLICATED);
    before.mutable_tables(0)->mutable_contract()->set_kind(proto::Contract::SSP);
    before.mutable_tables(0)->set_contract_epoch(30);
    EXPECT_TRUE(snapshot_.WriteTo(store_).ok());
  }

  void AddServer(uint64_t id) {
    proto::Node& node = *state_.mutable_view()->add_nodes();
    node.set_id(id);
    node.set_role(proto::SERVER);
    node.set_rank(static_cast<uint32_t>(id - 2));
    node.set_name("server-" + std::to_string(id - 2));
    node.set_state(proto::Node::ALIVE);
    node.add_endpoints("");
    node.add_endpoints("tcp://127.0.0.1:1");
  }
  static proto::RestoreTablesRequest Request(
      const std::vector<std::pair<std::string, std::string>>& tables = {}) {
    proto::RestoreTablesRequest request;
    request.set_snapshot("latest");
    for (const auto& [name, new_name] : tables) {
      proto::RestoredTable& table = *request.add_tables();
      table.set_name(name);
      table.set_new_name(new_name);
    }
    return request;
  }
  void AnswerStore() {
    for (auto requests = restores_->TakeRequests(); !requests.empty();
         requests = restores_->TakeRequests()) {
      for (const Message& request : requests) {
        EXPECT_TRUE(restores_->OnStoreReply(now_, AnswerStoreRequest(request, store_)));
      }
    }
  }
  // Until the tables are in the view, or the restore has failed.
  void Begin(const proto::RestoreTablesRequest& request) {
    const auto id = restores_->Begin(now_, request);
    ASSERT_TRUE(id.ok()) << id.status();
    EXPECT_EQ(Status().state(), State::READING);
    EXPECT_EQ(Status().id(), *id);
    AnswerStore();
  }
  // Why the request fails once the snapshot is read. Nothing is left of it.
  std::string Failure(const proto::RestoreTablesRequest& request) {
    const std::string before = view().SerializeAsString();
    Begin(request);
    EXPECT_EQ(view().SerializeAsString(), before);
    EXPECT_EQ(Status().state(), State::FAILED);
    return Status().reason();
  }
  // Reports on the replicas of the shard on one node, or, without a node, on all of them.
  void Report(proto::ReplicaReport::Kind kind, int table, int shard, uint64_t node = 0) {
    proto::ReplicaReportRequest request;
    const proto::Shard& reported = view().tables(table).shards(shard);
    for (const proto::Replica& replica : reported.chain()) {
      if (node != 0 && replica.node() != node) continue;
      proto::ReplicaReport& report = *request.add_reports();
      report.set_table(view().tables(table).id());
      report.set_shard(reported.index());
      report.set_generation(reported.generation());
      report.set_node(replica.node());
      report.set_kind(kind);
      report.set_reason("because");
    }
    restores_->OnReports(now_, request);
  }
  void Load(int table, int shard, uint64_t node = 0) {
    Report(proto::ReplicaReport::LOADED, table, shard, node);
  }
  State Status() const {
    proto::StatusReply reply;
    restores_->FillStatus(now_, reply);
    return reply.restore();
  }
  const proto::ClusterView& view() const { return state_.view(); }

  // Of the snapshot.
  const proto::Table& weights() const { return snapshot_.manifest.state().view().tables(0); }
  const proto::Table& bias() const { return snapshot_.manifest.state().view().tables(1); }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  SmallSnapshot snapshot_ = SmallSnapshot::Make(3, 42);
  TestState state_;
  MemoryFolder store_;
  Tables tables_{state_};
  std::string going_;  // the folder of a snapshot that is being removed
  const TableRestores::IsGoing is_going_ = [this](const std::string& folder) {
    return folder == going_;
  };
  std::optional<TableRestores> restores_{std::in_place, true, state_, tables_, is_going_};
};

TEST_F(TableRestoresTest, MakesAllTablesAsTheyWere) {
  Begin(Request());
  ASSERT_EQ(view().tables_size(), 2);
  EXPECT_TRUE(ClusterView::Make(view()).ok()) << ClusterView::Make(view()).status();
  EXPECT_EQ(view().epoch(), 101u);
  for (const proto::Table& table : view().tables()) {
    const proto::Table& before = table.spec().name() == "weights" ? weights() : bias();
    EXPECT_GE(table.id(), 5u);
    EXPECT_EQ(table.spec().SerializeAsString(), before.spec().SerializeAsString());
    EXPECT_EQ(table.contract().SerializeAsString(), before.contract().SerializeAsString());
    EXPECT_EQ(table.contract_epoch(), 0u);
    EXPECT_EQ(table.origin().folder(), kFolder);
    EXPECT_EQ(table.origin().table(), before.spec().name());
    EXPECT_EQ(table.origin().takes(), proto::TableOrigin::STATE);
    EXPECT_EQ(table.restore(), Status().id());
    ASSERT_EQ(table.shards_size(), before.shards_size());
    for (int i = 0; i < table.shards_size(); ++i) {
      EXPECT_EQ(table.shards(i).first_element(), before.shards(i).first_element());
      EXPECT_EQ(table.shards(i).element_count(), before.shards(i).element_count());
      EXPECT_EQ(table.shards(i).generation(), 101u);
      EXPECT_EQ(table.shards(i).origin(), "");
    }
  }
  EXPECT_EQ(Status().state(), State::LOADING);
  EXPECT_THAT(Status().tables(), ElementsAre("bias", "weights"));
  EXPECT_EQ(Status().shards(), 3u);
  EXPECT_EQ(state_.News(), "restoring tables 'bias', 'weights' from snapshot-000003-e42");
}

TEST_F(TableRestoresTest, IsCompleteWhenEveryReplicaOfEveryShardIsLoaded) {
  Begin(Request({{"bias", "copy"}, {"weights", ""}}));
  state_.News();
  const proto::Table& table = view().tables(0);
  ASSERT_EQ(table.shards(0).chain_size(), 2);
  Load(1, 0);
  Load(1, 1);
  Load(0, 0, table.shards(0).chain(0).node());
  EXPECT_EQ(Status().state(), State::LOADING);
  EXPECT_EQ(Status().shards_loaded(), 2u);
  EXPECT_EQ(Status().shards(), 3u);
  now_ += absl::Seconds(3);
  Load(0, 0);
  EXPECT_EQ(Status().state(), State::COMPLETE);
  EXPECT_EQ(Status().took_ms(), 3000u);
  EXPECT_THAT(Status().tables(), ElementsAre("copy", "weights"));
  for (const proto::Table& restored : view().tables()) EXPECT_EQ(restored.restore(), 0u);
  EXPECT_EQ(table.origin().folder(), kFolder) << "a lost shard begins from there again";
  EXPECT_EQ(state_.News(), "tables 'copy', 'weights' restored from snapshot-000003-e42");
  EXPECT_EQ(view().epoch(), 102u);
  now_ += absl::Hours(1);
  restores_->Tick(now_);
  EXPECT_EQ(Status().took_ms(), 3000u);
}

TEST_F(TableRestoresTest, AReplicaThatLeavesIsNotWaitedFor) {
  Begin(Request({{"bias", ""}}));
  proto::Shard& shard = *state_.mutable_view()->mutable_tables(0)->mutable_shards(0);
  ASSERT_EQ(shard.chain_size(), 2);
  Load(0, 0, shard.chain(1).node());
  shard.mutable_chain()->DeleteSubrange(0, 1);
  restores_->Tick(now_);
  EXPECT_EQ(Status().state(), State::COMPLETE);
}

TEST_F(TableRestoresTest, AJoiningReplicaIsNotWaitedFor) {
  Begin(Request({{"bias", ""}}));
  proto::Shard& shard = *state_.mutable_view()->mutable_tables(0)->mutable_shards(0);
  ASSERT_EQ(shard.chain_size(), 2);
  shard.mutable_chain(1)->set_joining(true);
  Load(0, 0, shard.chain(0).node());
  EXPECT_EQ(Status().state(), State::COMPLETE);
}

TEST_F(TableRestoresTest, OneShardThatCannotBeLoadedEndsAllTables) {
  Begin(Request());
  state_.News();
  Load(0, 0);
  const std::string server = NameOf(view(), NodeId(view().tables(1).shards(1).chain(0).node()));
  Report(proto::ReplicaReport::UNFIT, 1, 1);
  EXPECT_EQ(Status().state(), State::FAILED);
  EXPECT_EQ(Status().reason(), server + " cannot load table 'weights' shard 1: because");
  EXPECT_TRUE(view().tables().empty());
  EXPECT_EQ(state_.News(),
            "tables 'bias', 'weights' not restored from snapshot-000003-e42, and dropped again: " +
                Status().reason());
  // The next one is possible at once.
  Begin(Request());
  EXPECT_EQ(Status().state(), State::LOADING);
  EXPECT_EQ(Status().reason(), "");
}

TEST_F(TableRestoresTest, ReportsOnOtherTablesAndGenerationsMeanNothing) {
  ASSERT_TRUE(tables_.Create(bias().spec()).ok());
  Begin(Request({{"bias", "copy"}}));
  Report(proto::ReplicaReport::UNFIT, 0, 0);
  EXPECT_EQ(Status().state(), State::LOADING);
  EXPECT_EQ(view().tables_size(), 2);
  Load(0, 0);
  EXPECT_EQ(Status().shards_loaded(), 0u);
  const proto::Table before = view().tables(1);
  proto::Shard& shard = *state_.mutable_view()->mutable_tables(1)->mutable_shards(0);
  shard.set_generation(shard.generation() + 1);
  proto::ReplicaReportRequest request;
  proto::ReplicaReport& report = *request.add_reports();
  report.set_table(before.id());
  report.set_generation(before.shards(0).generation());
  report.set_node(before.shards(0).chain(0).node());
  report.set_kind(proto::ReplicaReport::UNFIT);
  restores_->OnReports(now_, request);
  EXPECT_EQ(Status().state(), State::LOADING);
}

TEST_F(TableRestoresTest, SaysWhyThereIsNothingToMake) {
  proto::RestoreTablesRequest request = Request();
  request.set_snapshot("17");
  EXPECT_THAT(Failure(request), HasSubstr("there is no complete snapshot of id 17"));
  EXPECT_THAT(Failure(Request({{"bias", ""}, {"none", ""}})),
              HasSubstr("snapshot-000003-e42 has no table 'none'; covey snapshot show"));
  EXPECT_EQ(Failure(Request({{"bias", "x"}, {"weights", "x"}})),
            "two tables are to be named 'x'; give each a name of its own");
  EXPECT_THAT(Failure(Request({{"bias", "a b"}})), HasSubstr("restore table 'a b': "));
  request.set_snapshot("?");
  EXPECT_TRUE(absl::IsInvalidArgument(restores_->Begin(now_, request).status()));
}

TEST_F(TableRestoresTest, ATakenNameNamesTheWayOut) {
  ASSERT_TRUE(tables_.Create(bias().spec()).ok());
  EXPECT_EQ(Failure(Request()),
            "restore table 'bias': the job has a table of this name; restore it under another one, "
            "with --table bias=NEWNAME");
  EXPECT_EQ(Failure(Request({{"weights", "bias"}})),
            "restore table 'bias': the job has a table of this name; restore it under another one, "
            "with --table weights=NEWNAME");
}

TEST_F(TableRestoresTest, AnImportHasNoStateOfAnOptimizer) {
  proto::SnapshotManifest manifest = snapshot_.manifest;
  manifest.set_id(0);
  manifest.set_folder("import-gpt2");
  const absl::Status status = TablesToRestore(Request(), manifest, 1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--initial-values import-gpt2"));
}

TEST_F(TableRestoresTest, TakesNothingFromASnapshotThatIsBeingRemoved) {
  going_ = kFolder;
  EXPECT_THAT(Failure(Request()), HasSubstr("is being removed"));
  going_ = "another";
  Begin(Request());
  EXPECT_EQ(Status().state(), State::LOADING);
}

TEST_F(TableRestoresTest, NeedsAStoreAndItsTurn) {
  TableRestores without(false, state_, tables_, is_going_);
  const absl::Status status = without.Begin(now_, Request()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("this job has no store"));
  Begin(Request({{"bias", ""}}));
  EXPECT_EQ(*restores_->Begin(now_, Request({{"bias", ""}})), Status().id()) << "asked again";
  const absl::Status second = restores_->Begin(now_, Request()).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(second));
  EXPECT_THAT(std::string(second.message()), HasSubstr("other tables are being restored"));
}

TEST_F(TableRestoresTest, IdsGrow) {
  Begin(Request({{"none", ""}}));
  const uint64_t first = Status().id();
  EXPECT_GE(first, 100u);
  Begin(Request({{"none", ""}}));
  EXPECT_GT(Status().id(), first);
}

TEST_F(TableRestoresTest, TablesThatNobodyLoadsAreDropped) {
  Begin(Request());
  now_ += TableRestores::kStallMax - absl::Seconds(1);
  Load(0, 0);
  const absl::Time progress = now_;
  EXPECT_EQ(restores_->NextTick(), progress + TableRestores::kStallMax);
  now_ += absl::Seconds(2);
  Load(0, 0);
  EXPECT_EQ(restores_->NextTick(), progress + TableRestores::kStallMax) << "a repeated report";
  now_ = progress + TableRestores::kStallMax;
  restores_->Tick(now_);
  EXPECT_EQ(Status().state(), State::FAILED);
  EXPECT_THAT(Status().reason(), HasSubstr("no further shard was loaded for 5m; 1 of 3 are"));
  EXPECT_TRUE(view().tables().empty());
  EXPECT_EQ(restores_->NextTick(), absl::InfiniteFuture());
}

TEST_F(TableRestoresTest, AStoreThatIsSilentIsNotWaitedForForever) {
  ASSERT_TRUE(restores_->Begin(now_, Request()).ok());
  const Message late = AnswerStoreRequest(restores_->TakeRequests().at(0), store_);
  now_ += TableRestores::kStallMax;
  restores_->Tick(now_);
  EXPECT_THAT(Status().reason(), HasSubstr("the scheduler's store has not answered"));
  EXPECT_FALSE(restores_->OnStoreReply(now_, late));
}

TEST_F(TableRestoresTest, TablesThatAUserDropsAreNotWaitedFor) {
  Begin(Request());
  ASSERT_TRUE(tables_.Drop("weights").ok());
  ASSERT_TRUE(tables_.Drop("bias").ok());
  restores_->Tick(now_);
  EXPECT_EQ(Status().state(), State::FAILED);
  EXPECT_THAT(Status().reason(), HasSubstr("were dropped meanwhile"));
}

TEST_F(TableRestoresTest, ARestartedSchedulerGoesOn) {
  Begin(Request());
  const uint64_t id = Status().id();
  Load(0, 0);
  restores_.emplace(true, state_, tables_, is_going_);
  restores_->Start(now_);
  EXPECT_EQ(Status().id(), id);
  EXPECT_EQ(Status().folder(), kFolder);
  EXPECT_EQ(Status().state(), State::LOADING);
  EXPECT_THAT(Status().tables(), ElementsAre("bias", "weights"));
  // Servers repeat their reports.
  Load(0, 0);
  Load(1, 0);
  Load(1, 1);
  EXPECT_EQ(Status().state(), State::COMPLETE);
}

TEST_F(TableRestoresTest, WithoutARestoreThereIsNoStatus) {
  restores_->Start(now_);
  restores_->Tick(now_);
  proto::StatusReply reply;
  restores_->FillStatus(now_, reply);
  EXPECT_FALSE(reply.has_restore());
  EXPECT_EQ(restores_->NextTick(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace covey::scheduler
