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
    contents_.Cut(kShard, kGeneration, 7, 0);
    EXPECT_EQ(contents_.Find(kShard), nullptr);
    contents_.Store(Entry(7));
    contents_.AddFile("part", 640);
  }
  void ExpectFound() {
    const StoredContents::Entries* found = contents_.Find(kShard);
    ASSERT_NE(found, nullptr);
    ASSERT_EQ(found->size(), 1u);
    EXPECT_EQ(found->front().folder(), "one");
    EXPECT_EQ(found->front().index(), 7u);
    EXPECT_EQ(contents_.BytesOf({"one", "part"}), 640u);
  }

  StoredContents contents_;
};

TEST_F(StoredContentsTest, FindsAShardOfTheBaseThatHasSeenOnlyACut) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 8, 0);
  ExpectFound();
}

TEST_F(StoredContentsTest, ARecordBetweenIsAChange) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 9, 0);
  EXPECT_EQ(contents_.Find(kShard), nullptr);
  contents_.Cut(kShard, kGeneration, 10, 0);
  EXPECT_EQ(contents_.Find(kShard), nullptr);
}

TEST_F(StoredContentsTest, SoIsAnotherGeneration) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration + 1, 8, 0);
  EXPECT_EQ(contents_.Find(kShard), nullptr);
}

TEST_F(StoredContentsTest, ReferencesNeverChain) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 8, 0);
  contents_.Refer(*contents_.Find(kShard), 8);
  contents_.Begin("three", "two");
  contents_.Cut(kShard, kGeneration, 9, 0);
  ExpectFound();
  contents_.Refer(*contents_.Find(kShard), 9);
  contents_.Begin("four", "three");
  contents_.Cut(kShard, kGeneration, 10, 0);
  ExpectFound();
}

TEST_F(StoredContentsTest, CutsOfOrdersThatFailedCount) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 8, 0);
  contents_.Store(Entry(8));
  contents_.Begin("three", "one");
  contents_.Cut(kShard, kGeneration, 9, 0);
  ExpectFound();
}

TEST_F(StoredContentsTest, OnlyTheBaseIsReferredTo) {
  contents_.Begin("two", "");
  contents_.Cut(kShard, kGeneration, 8, 0);
  EXPECT_EQ(contents_.Find(kShard), nullptr);
  contents_.Begin("three", "one");
  EXPECT_EQ(contents_.Find(kShard), nullptr) << "it is forgotten";
}

TEST_F(StoredContentsTest, AFileThatWasNotCompletedIsNotReferredTo) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 9, 0);
  contents_.Store(Entry(9));
  contents_.Begin("three", "two");
  contents_.Cut(kShard, kGeneration, 10, 0);
  EXPECT_EQ(contents_.Find(kShard), nullptr);
}

TEST_F(StoredContentsTest, AShardThatChangedIsReferredToAsOfTheNewSnapshot) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 20, 0);
  contents_.Store(Entry(20));
  contents_.AddFile("part", 1280);
  contents_.Begin("three", "two");
  contents_.Cut(kShard, kGeneration, 21, 0);
  const StoredContents::Entries* found = contents_.Find(kShard);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->front().folder(), "two");
  EXPECT_EQ(found->front().index(), 20u);
}

// All records between the cuts 7 and 12 are in a log.
TEST_F(StoredContentsTest, AShardThatChangedIsFoundWithTheLogOfItsChanges) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 12, 7);
  EXPECT_EQ(contents_.Find(kShard), nullptr);
  const StoredContents::Entries* found = contents_.FindLogged(kShard);
  ASSERT_NE(found, nullptr);
  StoredContents::Entries entries = *found;
  entries.push_back(Entry(12));
  entries.back().set_folder("one");
  entries.back().set_file("log");
  contents_.AddLog("log", 320);
  contents_.Refer(entries, 12);
  contents_.Begin("three", "two");
  contents_.Cut(kShard, kGeneration, 13, 0);
  ASSERT_NE(contents_.Find(kShard), nullptr);
  EXPECT_EQ(contents_.Find(kShard)->size(), 2u);
  EXPECT_EQ(contents_.BytesOf({"one", "log"}), 320u);
}

TEST_F(StoredContentsTest, ALogThatBeginsWithAnotherCutIsNone) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 12, 6);
  EXPECT_EQ(contents_.FindLogged(kShard), nullptr);
}

// The log of an order that failed was given up.
TEST_F(StoredContentsTest, AChangeIsLoggedForOneOrder) {
  contents_.Begin("two", "one");
  contents_.Cut(kShard, kGeneration, 12, 7);
  contents_.Begin("three", "one");
  contents_.Cut(kShard, kGeneration, 13, 0);
  EXPECT_EQ(contents_.Find(kShard), nullptr);
  EXPECT_EQ(contents_.FindLogged(kShard), nullptr);
}

}  // namespace
}  // namespace covey::server
