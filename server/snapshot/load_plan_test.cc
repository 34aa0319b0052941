// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/load_plan.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/snapshot/testing/small_snapshot.h"

namespace covey::server {
namespace {

// Of SmallSnapshot: "weights" has momentum, and shards of 16 and 4 elements in two files.
constexpr char kFolder[] = "snapshot-000017-e42";
using Takes = LoadSource::Takes;

LoadSource Source(Takes takes, const std::string& table, uint64_t first, uint64_t count) {
  return {.folder = kFolder, .table = table, .first = first, .count = count, .takes = takes};
}

LoadSource ValuesOf(const std::string& table, uint64_t first, uint64_t count) {
  return Source(Takes::kValues, table, first, count);
}

class LoadPlanTest : public testing::Test {
 protected:
  const proto::SnapshotManifest manifest_ = SmallSnapshot::Make(17, 42).manifest;
};

TEST_F(LoadPlanTest, AShardThatContinuesAnotherTakesAllPiecesAsTheyAre) {
  const auto plan = PlanLoad(manifest_, Source(Takes::kEverything, "weights", 16, 4));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->size(), 3u);
  const proto::SnapshotShard& shard = manifest_.shards(1);
  for (int i = 0; i < 3; ++i) {
    const PlannedPiece& planned = (*plan)[static_cast<size_t>(i)];
    EXPECT_EQ(planned.shard, &shard);
    EXPECT_EQ(planned.piece, &shard.pieces(i));
    EXPECT_EQ(planned.skip_bytes, 0u);
    EXPECT_EQ(planned.bytes, shard.pieces(i).bytes());
    EXPECT_EQ(planned.as.index(), shard.index());
    EXPECT_EQ(planned.as.version(), 340u);
    EXPECT_EQ(planned.as.samples(), 10'880u);
    EXPECT_EQ(planned.as.piece(), static_cast<uint64_t>(i));
    EXPECT_EQ(planned.as.pieces(), 3u);
    EXPECT_EQ(static_cast<int>(planned.as.kind()), static_cast<int>(shard.pieces(i).kind()));
  }
}

TEST_F(LoadPlanTest, ARestoredShardTakesNoClocksAndPushes) {
  const auto plan = PlanLoad(manifest_, Source(Takes::kState, "weights", 16, 4));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->size(), 2u);
  for (int i = 0; i < 2; ++i) {
    const PlannedPiece& planned = (*plan)[static_cast<size_t>(i)];
    EXPECT_EQ(planned.piece, &manifest_.shards(1).pieces(i));
    EXPECT_EQ(planned.as.kind(), i == 0 ? proto::ReplicaPiece::VALUES : proto::ReplicaPiece::SLOT);
    EXPECT_EQ(planned.as.index(), 0u) << "records of the snapshot are none of this shard's";
    EXPECT_EQ(planned.as.version(), 340u);
    EXPECT_EQ(planned.as.samples(), 10'880u);
    EXPECT_EQ(planned.as.pieces(), 2u);
  }
}

TEST_F(LoadPlanTest, SlotsAreOfAShardOfTheSameRange) {
  for (const Takes takes : {Takes::kState, Takes::kEverything}) {
    EXPECT_TRUE(PlanLoad(manifest_, Source(takes, "weights", 0, 16)).ok());
    for (const auto& [first, count] : {std::pair(16, 3), std::pair(15, 5), std::pair(20, 4)}) {
      const absl::Status status =
          PlanLoad(manifest_, Source(takes, "weights", first, count)).status();
      EXPECT_TRUE(absl::IsNotFound(status)) << status;
    }
  }
}

TEST_F(LoadPlanTest, ANewShardTakesTheValuesOfItsRangeOnly) {
  const auto plan = PlanLoad(manifest_, ValuesOf("weights", 14, 5));
  ASSERT_TRUE(plan.ok()) << plan.status();
  ASSERT_EQ(plan->size(), 2u);
  const PlannedPiece& first = (*plan)[0];
  EXPECT_EQ(first.piece, &manifest_.shards(0).pieces(0));
  EXPECT_EQ(first.skip_bytes, 14 * sizeof(float));
  EXPECT_EQ(first.bytes, 2 * sizeof(float));
  EXPECT_EQ(first.as.first(), 0u);
  const PlannedPiece& second = (*plan)[1];
  EXPECT_EQ(second.piece, &manifest_.shards(1).pieces(0));
  EXPECT_EQ(second.skip_bytes, 0u);
  EXPECT_EQ(second.bytes, 3 * sizeof(float));
  EXPECT_EQ(second.as.first(), 2u);
  for (const PlannedPiece& planned : *plan) {
    EXPECT_EQ(static_cast<int>(planned.as.kind()), proto::ReplicaPiece::VALUES);
    EXPECT_EQ(planned.as.version(), 0u);
    EXPECT_EQ(planned.as.samples(), 0u);
    EXPECT_EQ(planned.as.index(), 0u);
    EXPECT_EQ(planned.as.pieces(), 2u);
  }
}

// However the new table is cut, each element is taken once, from where it is.
TEST_F(LoadPlanTest, EveryRangeIsCoveredWithoutGapOrOverlap) {
  for (uint64_t begin = 0; begin < 20; ++begin) {
    for (uint64_t count = 1; begin + count <= 20; ++count) {
      const auto plan = PlanLoad(manifest_, ValuesOf("weights", begin, count));
      ASSERT_TRUE(plan.ok()) << plan.status();
      uint64_t next = 0;
      for (const PlannedPiece& planned : *plan) {
        ASSERT_EQ(planned.as.first(), next);
        const uint64_t shard_first = planned.shard == &manifest_.shards(0) ? 0 : 16;
        ASSERT_EQ(shard_first + planned.skip_bytes / sizeof(float), begin + next);
        ASSERT_LE(planned.skip_bytes + planned.bytes, planned.piece->bytes());
        next += planned.bytes / sizeof(float);
      }
      ASSERT_EQ(next, count) << begin;
    }
  }
}

TEST_F(LoadPlanTest, WhatIsNotThereIsNamed) {
  const absl::Status none = PlanLoad(manifest_, ValuesOf("biases", 0, 3)).status();
  EXPECT_TRUE(absl::IsNotFound(none));
  EXPECT_EQ(none.message(), "snapshot-000017-e42 has no table 'biases'");
  EXPECT_TRUE(absl::IsOutOfRange(PlanLoad(manifest_, ValuesOf("weights", 18, 3)).status()));
  EXPECT_TRUE(absl::IsOutOfRange(PlanLoad(manifest_, ValuesOf("weights", 30, 1)).status()));
}

}  // namespace
}  // namespace covey::server
