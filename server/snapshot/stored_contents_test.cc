// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/stored_contents.h"

#include "gtest/gtest.h"

namespace covey::server {
namespace {

constexpr ShardId kShard{TableId(3), ShardIndex(1)};
constexpr uint64_t kGeneration = 5;

proto::SnapshotShard Entry(uint64_t index) {
  proto::SnapshotShard entry;
  entry.set_table(3);
  entry.set_shard(1);
  entry.set_generation(kGeneration);
  entry.set_index(index);
  entry.set_file("part");
  return entry;
}

// A loop that has stored the shard in snapshot 1, cut by record 7.
class StoredContentsTest : public ::testing::Test {
 protected:
  StoredContentsTest() {
    contents_.Begin("one", "");
    contents_.Cut(kShard, kGeneration, 7);
    EXPECT_EQ(contents_.Find(kShard), nullptr);
    contents_.Store(Entry(7));
    contents_.AddFile("part", 640);
  }
  void ExpectFound() {
    const proto::SnapshotShard* found = contents_.Find(kShard);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->folder(), "one");
    EXPECT_EQ(found->index(), 7u);
    EXPECT_EQ(contents_.BytesOf({"one", "part"}), 640u);
  }

  StoredContents contents_;
};

TEST_F(StoredContentsTest, FindsAShardOfTheBaseThatHasSeenOnlyACut) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 8);
  ExpectFound();
}

TEST_F(StoredContentsTest, ARecordBetweenIsAChange) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 9);
  EXPECT_EQ(contents_.Find(kShard), nullptr);
  contents_.Cut(kShard, kGeneration, 10);
  EXPECT_EQ(contents_.Find(kShard), nullptr);
}

TEST_F(StoredContentsTest, SoIsAnotherGeneration) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration + 1, 8);
  EXPECT_EQ(contents_.Find(kShard), nullptr);
}

TEST_F(StoredContentsTest, ReferencesNeverChain) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 8);
  contents_.Refer(*contents_.Find(kShard), 8);
  contents_.Begin("three", "two");
  contents_.Cut(kShard, kGeneration, 9);
  ExpectFound();
  contents_.Refer(*contents_.Find(kShard), 9);
  contents_.Begin("four", "three");
  contents_.Cut(kShard, kGeneration, 10);
  ExpectFound();
}

TEST_F(StoredContentsTest, CutsOfOrdersThatFailedCount) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 8);
  contents_.Store(Entry(8));
  contents_.Begin("three", "one");
  contents_.Cut(kShard, kGeneration, 9);
  ExpectFound();
}

TEST_F(StoredContentsTest, OnlyTheBaseIsReferredTo) {
  contents_.Begin("two", "");
  contents_.Cut(kShard, kGeneration, 8);
  EXPECT_EQ(contents_.Find(kShard), nullptr);
  contents_.Begin("three", "one");
  EXPECT_EQ(contents_.Find(kShard), nullptr) << "it is forgotten";
}

TEST_F(StoredContentsTest, AFileThatWasNotCompletedIsNotReferredTo) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 9);
  contents_.Store(Entry(9));
  contents_.Begin("three", "two");
  contents_.Cut(kShard, kGeneration, 10);
  EXPECT_EQ(contents_.Find(kShard), nullptr);
}

TEST_F(StoredContentsTest, AShardThatChangedIsReferredToAsOfTheNewSnapshot) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 20);
  contents_.Store(Entry(20));
  contents_.AddFile("part", 1280);
  contents_.Begin("three", "two");
  contents_.Cut(kShard, kGeneration, 21);
  const proto::SnapshotShard* found = contents_.Find(kShard);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->folder(), "two");
  EXPECT_EQ(found->index(), 20u);
}

}  // namespace
}  // namespace covey::server
