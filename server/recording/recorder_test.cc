// SPDX-License-Identifier: Apache-2.0
#include "server/recording/recorder.h"

#include "common/net/testing/frame_lender.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/recording_fixture.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr Contract kBsp{.kind = Contract::Kind::kBsp};
constexpr char kFirstFile[] = "recording-2-1-00000.cvr";

const ShardContent& ContentOf(RecordingDriver& recording, uint32_t shard = 0) {
  return *recording.driver()
              .actor()
              .FindReplica({TableId(kTestTable), ShardIndex(shard)})
              ->content();
}

TEST(Recorder, RecordsEachPushInTheOrderOfItsUpdate) {
  RecordingDriver recording(TestJob(kAsync, 2));
  ShardDriver& driver = recording.driver();
  recording.Deliver(driver.GroupPush(2, 1, {1, 2, 3, 4}, 5));
  Message late = driver.GroupPush(1, 1, {5, 6, 7, 8}, 6);
  late.envelope.mutable_push_request()->set_base_version(1);
  recording.Deliver(late);
  recording.Deliver(driver.ClientPush(1, {1, 1, 1, 1}, 7));
  recording.Deliver(late);  // a duplicate, which is applied once
  const uint64_t digest = ContentOf(recording).Digest();
  const Recording recorded = recording.End();
  EXPECT_THAT(recorded.notes(), IsEmpty());
  ASSERT_EQ(recorded.shards().size(), 1u);
  const ShardHistory& shard = recorded.shards()[0];
  EXPECT_EQ(shard.table.spec().name(), "weights");
  EXPECT_EQ(shard.shard().generation(), kTestGeneration);
  ASSERT_EQ(shard.updates.size(), 3u);
  const AppliedPush& first = shard.updates[0].record.pushes.at(0);
  EXPECT_EQ(first.producer_kind, AppliedPush::Producer::kGroup);
  EXPECT_EQ(first.producer, 2u);
  EXPECT_EQ(first.step, 1u);
  EXPECT_EQ(first.samples, 5u);
  const AppliedPush& second = shard.updates[1].record.pushes.at(0);
  EXPECT_EQ(second.group, 1u);
  EXPECT_EQ(second.base_version, 1u);
  EXPECT_EQ(shard.updates[1].version, 2u);
  EXPECT_THAT(recorded.ReadGradient(shard.updates[1])->As<float>(), ElementsAre(5, 6, 7, 8));
  const AppliedPush& third = shard.updates[2].record.pushes.at(0);
  EXPECT_EQ(third.producer_kind, AppliedPush::Producer::kClient);
  EXPECT_EQ(third.producer, kTestClient.value());
  EXPECT_EQ(third.group, 0u);
  EXPECT_EQ(shard.updates[2].digest, digest);
}

TEST(Recorder, RecordsASumWithAllItsPushes) {
  RecordingDriver recording(TestJob(kBsp, 2));
  ShardDriver& driver = recording.driver();
  recording.Deliver(driver.GroupPush(2, 1, {1, 2, 3, 4}));
  recording.Deliver(driver.GroupPush(1, 1, {10, 20, 30, 40}));
  const Recording recorded = recording.End();
  ASSERT_EQ(recorded.shards().at(0).updates.size(), 1u);
  const RecordedUpdate& update = recorded.shards()[0].updates[0];
  EXPECT_EQ(update.record.pushes.size(), 2u);
  EXPECT_THAT(recorded.ReadGradient(update)->As<float>(), ElementsAre(11, 22, 33, 44));
}

TEST(Recorder, NotesADigestEvery64Records) {
  RecordingDriver recording(TestJob(kAsync, 1));
  uint64_t digest = 0;
  for (uint64_t step = 1; step <= 130; ++step) {
    recording.Deliver(recording.driver().GroupPush(1, step, {1, 1, 1, 1}));
    if (step == 64) digest = ContentOf(recording).Digest();
  }
  const Recording recorded = recording.End();
  std::vector<uint64_t> with_digest;
  for (const RecordedUpdate& update : recorded.shards().at(0).updates) {
    if (update.digest) with_digest.push_back(update.index);
  }
  EXPECT_THAT(with_digest, ElementsAre(64, 128, 130));
  EXPECT_EQ(recorded.shards()[0].updates[63].digest, digest);
}

TEST(Recorder, LeavesGradientsOutWhenAsked) {
  RecordingDriver recording(TestJob(kAsync, 1), {.gradients = false});
  for (uint64_t step = 1; step <= 60; ++step) {
    recording.Deliver(recording.driver().GroupPush(1, step, {1, 1, 1, 1}));
  }
  recording.Flush();
  EXPECT_LT(recording.folder().BytesOf(kFirstFile).size(), 1000u);
  const Recording recorded = recording.End();
  ASSERT_EQ(recorded.shards().at(0).updates.size(), 60u);
  EXPECT_FALSE(recorded.ReadGradient(recorded.shards()[0].updates[0]).ok());
}

TEST(Recorder, KeepsNoLentGradient) {
  FrameLender lender;
  RecordingDriver recording(TestJob(kAsync, 1));
  recording.Deliver(lender.Lend(recording.driver().GroupPush(1, 1, {1, 2, 3, 4})));
  EXPECT_EQ(lender.out(), 0u);
  const Recording recorded = recording.End();
  EXPECT_THAT(recorded.ReadGradient(recorded.shards().at(0).updates.at(0))->As<float>(),
              ElementsAre(1, 2, 3, 4));
}

TEST(Recorder, IsReadableAfterEachFlush) {
  RecordingDriver recording(TestJob(kAsync, 1));
  recording.Deliver(recording.driver().GroupPush(1, 1, {1, 1, 1, 1}));
  recording.Flush();
  recording.Deliver(recording.driver().GroupPush(1, 2, {1, 1, 1, 1}));
  // The server is killed here.
  const auto recorded = Recording::Open(recording.folder());
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_EQ(recorded->shards().at(0).updates.size(), 1u);
  EXPECT_THAT(recorded->notes(), ElementsAre(HasSubstr("ends after block 1")));
}

TEST(Recorder, BeginsANewFileWhenTheLastIsLarge) {
  constexpr uint64_t kElements = 4 << 20;
  RecordingDriver recording(TestJob(kAsync, 1, kElements));
  const std::vector<float> gradient(kElements, 1);
  for (uint64_t step = 1; step <= 6; ++step) {
    recording.Deliver(recording.driver().GroupPush(1, step, gradient));
  }
  const Recording recorded = recording.End();
  EXPECT_THAT(recorded.files(), ElementsAre(kFirstFile, "recording-2-1-00001.cvr"));
  EXPECT_EQ(recorded.shards().at(0).updates.size(), 6u);
  EXPECT_THAT(recorded.notes(), IsEmpty());
}

TEST(Recorder, TrainingGoesOnWhenTheDiskFails) {
  RecordingDriver recording(TestJob(kAsync, 1));
  recording.folder().PlanFault(1, MemoryFolder::Fault::kNoSpace);
  recording.Deliver(recording.driver().GroupPush(1, 1, {1, 1, 1, 1}));
  recording.Flush();
  EXPECT_EQ(recording.requests(), 1);
  for (uint64_t step = 2; step <= 100; ++step) {
    const auto replies = recording.Deliver(recording.driver().GroupPush(1, step, {1, 1, 1, 1}));
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_EQ(replies[0].envelope.push_reply().applied_version(), step);
  }
  recording.Flush();
  EXPECT_EQ(recording.requests(), 1);
}

TEST(Recorder, EndsWhenTheDiskIsSlowerThanThePushes) {
  constexpr uint64_t kElements = 64 << 10;  // each push is a block
  RecordingDriver recording(TestJob(kAsync, 1, kElements), {.bytes_in_flight_max = 1 << 20});
  const std::vector<float> gradient(kElements, 1);
  recording.Deliver(recording.driver().GroupPush(1, 1, gradient));
  recording.Hang();
  for (uint64_t step = 2; step <= 10; ++step) {
    const auto replies = recording.Deliver(recording.driver().GroupPush(1, step, gradient));
    ASSERT_EQ(replies.size(), 1u);
    EXPECT_EQ(replies[0].envelope.push_reply().applied_version(), step);
  }
  // Three blocks of 256 KiB, besides the one that was stored, are below the limit.
  EXPECT_EQ(recording.requests(), 1 + 3);
  const Recording recorded = recording.End();
  EXPECT_EQ(recorded.shards().at(0).updates.size(), 1u);
}

TEST(Recorder, NotesTheDigestOfAShardThatLeaves) {
  TestJob job(kAsync, 1);
  RecordingDriver recording(job);
  recording.Deliver(recording.driver().GroupPush(1, 1, {1, 2, 3, 4}));
  const uint64_t digest = ContentOf(recording).Digest();
  job.view.set_epoch(job.view.epoch() + 1);
  job.view.mutable_tables(0)->mutable_shards(0)->clear_chain();
  recording.driver().AdoptView(job);
  recording.Flush();
  const Recording recorded = recording.End();
  EXPECT_EQ(recorded.shards().at(0).updates.at(0).digest, digest);
}

}  // namespace
}  // namespace covey::server
