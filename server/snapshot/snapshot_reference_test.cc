// SPDX-License-Identifier: Apache-2.0

// A shard that has not changed since the newest complete snapshot is not stored again.

#include <cstdint>
#include <string>
#include <vector>

#include "common/cluster/ids.h"
#include "gmock/gmock.h"
#include "server/snapshot/snapshot_writer.h"
#include "server/snapshot/snapshot_writer_fixture.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

constexpr char kOne[] = "snapshot-000001-e6";
constexpr char kTwo[] = "snapshot-000002-e6";
constexpr char kThree[] = "snapshot-000003-e6";

// A loop that has stored a small and a large shard, each cut by record 7, in the first snapshot.
class SnapshotReferenceTest : public SnapshotWriterTest {
 protected:
  static constexpr size_t kSmall = 4;
  static constexpr size_t kLarge = 4096;

  SnapshotReferenceTest() {
    AddShard();
    Order(1, 6);
    FollowView(6);
    CutBoth(1, 7, 7);
    AnswerAll();
    EXPECT_THAT(reports_, SizeIs(1));
  }
  // By these records of the small and of the large shard.
  void CutBoth(uint64_t snapshot, uint64_t small, uint64_t large) {
    Cut(kShard, snapshot, 5 + snapshot, {.values = Filled(kSmall, 1)}, small);
    Cut(kSecond, snapshot, 5 + snapshot, {.values = Filled(kLarge, 2)}, large);
  }
  // Makes the next snapshot; its report.
  const proto::SnapshotReportRequest& Make(uint64_t snapshot, const std::string& base,
                                           uint64_t small, uint64_t large) {
    view_.clear_snapshot();
    Order(snapshot, 5 + snapshot, base);
    FollowView(5 + snapshot);
    CutBoth(snapshot, small, large);
    AnswerAll();
    EXPECT_EQ(reports_.back().snapshot(), snapshot);
    EXPECT_EQ(reports_.back().failure(), "");
    return reports_.back();
  }
  // "folder/file index" of the shards in a report, by shard.
  static std::vector<std::string> Places(const proto::SnapshotReportRequest& report) {
    std::vector<std::string> places(2);
    for (const proto::SnapshotShard& shard : report.shards()) {
      places[shard.shard()] =
          shard.folder() + "/" + shard.file() + " " + std::to_string(shard.index());
    }
    return places;
  }
  static std::vector<std::string> Files(const proto::SnapshotReportRequest& report) {
    std::vector<std::string> files;
    for (const proto::SnapshotFile& file : report.files()) {
      files.push_back(file.folder() + "/" + file.name());
    }
    return files;
  }
};

TEST_F(SnapshotReferenceTest, AnUnchangedShardIsReferredTo) {
  const proto::SnapshotReportRequest& report = Make(2, kOne, 9, 8);
  EXPECT_THAT(Places(report), ElementsAre("/part-2-1.cvp 9", "snapshot-000001-e6/part-2-1.cvp 7"));
  EXPECT_THAT(Files(report), ElementsAre("/part-2-1.cvp", "snapshot-000001-e6/part-2-1.cvp"));
  EXPECT_EQ(report.files(1).bytes(), store_.BytesOf(kPath).size());
  EXPECT_LT(store_.BytesOf(std::string(kTwo) + "/part-2-1.cvp").size(), kLarge);
}

TEST_F(SnapshotReferenceTest, NothingIsWrittenWhenNothingHasChanged) {
  EXPECT_THAT(Places(Make(2, kOne, 8, 8)), ElementsAre("snapshot-000001-e6/part-2-1.cvp 7",
                                                       "snapshot-000001-e6/part-2-1.cvp 7"));
  EXPECT_THAT(Files(reports_.back()), ElementsAre("snapshot-000001-e6/part-2-1.cvp"));
  EXPECT_TRUE(absl::IsNotFound(store_.List(kTwo).status()));
  // The next one refers to the folder that holds the bytes.
  EXPECT_THAT(Places(Make(3, kTwo, 9, 10)),
              ElementsAre("/part-2-1-idle.cvp 9", "/part-2-1.cvp 10"));
}

TEST_F(SnapshotReferenceTest, WithoutABaseAllIsWritten) {
  EXPECT_THAT(Places(Make(2, "", 8, 8)), ElementsAre("/part-2-1.cvp 8", "/part-2-1.cvp 8"));
}

// The second snapshot was not completed.
TEST_F(SnapshotReferenceTest, ASnapshotThatFailedIsNoBase) {
  EXPECT_THAT(Places(Make(2, kOne, 8, 9)), ElementsAre("/part-2-1-idle.cvp 8", "/part-2-1.cvp 9"));
  EXPECT_THAT(Places(Make(3, kOne, 20, 10)), ElementsAre("/part-2-1.cvp 20", "/part-2-1.cvp 10"));
}

// What has not changed is less than half of the earlier file: the rest could never be removed.
TEST_F(SnapshotReferenceTest, AnIdleShardGetsAFileOfItsOwn) {
  EXPECT_THAT(Places(Make(2, kOne, 8, 9)), ElementsAre("/part-2-1-idle.cvp 8", "/part-2-1.cvp 9"));
  EXPECT_THAT(Files(reports_.back()), ElementsAre("/part-2-1-idle.cvp", "/part-2-1.cvp"));
  for (const proto::SnapshotFile& file : reports_.back().files()) {
    EXPECT_EQ(file.bytes(), store_.BytesOf(std::string(kTwo) + "/" + file.name()).size());
  }
  // From now on it costs nothing.
  EXPECT_THAT(Places(Make(3, kTwo, 9, 12)),
              ElementsAre("snapshot-000002-e6/part-2-1-idle.cvp 8", "/part-2-1.cvp 12"));
  EXPECT_THAT(Places(Make(4, kThree, 10, 15)),
              ElementsAre("snapshot-000002-e6/part-2-1-idle.cvp 8", "/part-2-1.cvp 15"));
}

TEST_F(SnapshotReferenceTest, AWithdrawnOrderLeavesNeitherOfItsFiles) {
  view_.clear_snapshot();
  Order(2, 7, kOne);
  FollowView(7);
  CutBoth(2, 8, 9);
  // All but the last request, the sync of the second file.
  std::vector<Message> requests = TakeRequests();
  while (!requests.empty()) {
    for (const Message& request : requests) {
      const auto& store = request.envelope.store_request();
      if (store.has_sync() && store.path() == std::string(kTwo) + "/part-2-1-idle.cvp") continue;
      Answer(request);
    }
    requests = TakeRequests();
  }
  EXPECT_THAT(reports_, SizeIs(1));
  EXPECT_THAT(*store_.List(kTwo), SizeIs(2));
  view_.clear_snapshot();
  FollowView(8);
  AnswerAll();
  EXPECT_TRUE(absl::IsNotFound(store_.List(kTwo).status())) << "a folder goes with its last file";
  EXPECT_FALSE(store_.BytesOf(kPath).empty()) << "the first snapshot stays";
}

TEST_F(SnapshotReferenceTest, ACutThatComesBeforeItsOrderIsReferredToAsWell) {
  view_.clear_snapshot();
  FollowView(6);
  CutBoth(2, 8, 8);
  Order(2, 7, kOne);
  FollowView(7);
  AnswerAll();
  EXPECT_THAT(Files(reports_.back()), ElementsAre("snapshot-000001-e6/part-2-1.cvp"));
}

}  // namespace
}  // namespace covey::server
