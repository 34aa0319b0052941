// SPDX-License-Identifier: Apache-2.0

// From where a shard is filled, and what the scheduler is told about a shard whose table is being
// restored.

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "common/base/buffer_pool.h"
#include "gtest/gtest.h"
#include "server/replication/load_source.h"
#include "server/replication/replica.h"
#include "server/table/host_memory.h"
#include "server/testing/shard_fixture.h"

namespace covey::server {
namespace {

constexpr absl::Time kNow = absl::UnixEpoch();
constexpr char kFolder[] = "snapshot-000017-e42";
const Contract kAsync{.kind = Contract::Kind::kAsync};
using Takes = LoadSource::Takes;

// A table "weights", restored from the snapshot's table "before" as restore 77. Its shard 1 has
// elements 4 to 7.
TestJob RestoredJob() {
  TestJob job(kAsync, 0, 4, 2);
  proto::Table& table = *job.view.mutable_tables(0);
  table.mutable_origin()->set_folder(kFolder);
  table.mutable_origin()->set_table("before");
  table.mutable_origin()->set_takes(proto::TableOrigin::STATE);
  table.set_restore(77);
  for (proto::Shard& shard : *table.mutable_shards()) shard.set_chain_epoch(1);
  return job;
}

class RestoredShardTest : public testing::Test {
 protected:
  void Follow(bool joining = false) {
    job_.view.set_epoch(job_.view.epoch() + 1);
    proto::Shard& shard = *job_.view.mutable_tables(0)->mutable_shards(0);
    if (joining) {
      *shard.add_chain() = shard.chain(0);
      shard.mutable_chain(0)->set_node(kTestServer.value() + 1);
      shard.mutable_chain(1)->set_joining(true);
      shard.set_chain_epoch(2);
    }
    replica_.SetView(kNow, *ClusterView::Make(job_.view), {kTestServer, 1}, outbox_);
  }
  // The values, of a content that is as the initializer makes it. SGD has no slots.
  void LoadAll() {
    const proto::Table& table = job_.view.tables(0);
    const TableRules rules = *RulesOf(table, table.shards(0));
    ContentExport content((*ShardContent::Create(kNow, rules.shard, memory_))->Cut());
    Message piece = content.Piece(0);
    piece.envelope.mutable_replica_piece()->set_pieces(1);
    piece.envelope.mutable_replica_piece()->set_version(40);
    piece.envelope.mutable_replica_piece()->set_samples(320);
    replica_.Load(kNow, piece, outbox_);
  }
  std::vector<proto::ReplicaReport::Kind> Reports() {
    std::vector<proto::ReplicaReport::Kind> kinds;
    for (const proto::ReplicaReport& report : replica_.TakeReports()) {
      EXPECT_EQ(report.node(), kTestServer.value());
      EXPECT_EQ(report.generation(), kTestGeneration);
      kinds.push_back(report.kind());
    }
    return kinds;
  }

  TestJob job_ = RestoredJob();
  BufferPool spares_{1 << 20};
  HostMemory memory_{spares_};
  ShardCounters counters_;
  Outbox outbox_;
  Replica replica_{{TableId(kTestTable), ShardIndex(0)},
                   kTestGeneration,
                   {.memory = memory_, .spares = spares_, .counters = counters_}};
};

using Kinds = std::vector<proto::ReplicaReport::Kind>;

TEST_F(RestoredShardTest, ATableSaysFromWhereItsShardsBegin) {
  proto::Table& table = *job_.view.mutable_tables(0);
  const std::optional<LoadSource> state = LoadSourceOf(table, table.shards(1));
  ASSERT_TRUE(state);
  EXPECT_EQ(state->folder, kFolder);
  EXPECT_EQ(state->table, "before");
  EXPECT_EQ(state->first, 4u);
  EXPECT_EQ(state->count, 4u);
  EXPECT_EQ(state->takes, Takes::kState);
  table.mutable_origin()->set_takes(proto::TableOrigin::VALUES);
  EXPECT_EQ(LoadSourceOf(table, table.shards(1))->takes, Takes::kValues);
  // A shard that was lost continues the newest snapshot of the table itself.
  table.mutable_shards(1)->set_origin("snapshot-000018-e50");
  const std::optional<LoadSource> everything = LoadSourceOf(table, table.shards(1));
  EXPECT_EQ(everything->folder, "snapshot-000018-e50");
  EXPECT_EQ(everything->table, "weights");
  EXPECT_EQ(everything->takes, Takes::kEverything);
  table.clear_origin();
  EXPECT_FALSE(LoadSourceOf(table, table.shards(0)));
}

TEST_F(RestoredShardTest, IsReportedOnceItIsLoaded) {
  Follow();
  ASSERT_TRUE(replica_.Open(kNow).ok());
  EXPECT_EQ(replica_.TakeLoadRequest()->takes, Takes::kState);
  EXPECT_EQ(Reports(), Kinds());
  LoadAll();
  ASSERT_NE(replica_.content(), nullptr);
  EXPECT_EQ(replica_.content()->version(), Version(40));
  EXPECT_EQ(replica_.content()->samples(), 320u);
  EXPECT_EQ(Reports(), Kinds({proto::ReplicaReport::LOADED}));
}

TEST_F(RestoredShardTest, IsNotReportedOnceTheTableIsRestored) {
  job_.view.mutable_tables(0)->set_restore(0);
  Follow();
  ASSERT_TRUE(replica_.Open(kNow).ok());
  LoadAll();
  EXPECT_NE(replica_.content(), nullptr);
  EXPECT_EQ(Reports(), Kinds());
}

TEST_F(RestoredShardTest, IsUnfitWhenItCannotBeLoaded) {
  Follow();
  ASSERT_TRUE(replica_.Open(kNow).ok());
  replica_.Load(kNow, absl::DataLossError("damaged"), outbox_);
  EXPECT_EQ(Reports(), Kinds({proto::ReplicaReport::UNFIT}));
}

}  // namespace
}  // namespace covey::server
