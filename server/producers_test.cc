#include "server/producers.h"

#include "common/cluster/limits.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

bool Nobody(const Producer&) { return false; }
bool Everybody(const Producer&) { return true; }

PushKey Key(uint64_t id, uint64_t incarnation, uint64_t sequence) {
  return {.producer = {.kind = Producer::Kind::kClient, .id = id},
          .incarnation = incarnation,
          .sequence = sequence};
}

TEST(Producers, TellClientsFromGroupsOfTheSameNumber) {
  Producers producers;
  PushKey key = Key(1, 1, 1);
  ASSERT_TRUE(producers.Record(key, Nobody).ok());
  EXPECT_TRUE(producers.Find(key)->known);
  key.producer.kind = Producer::Kind::kGroup;
  EXPECT_FALSE(producers.Find(key)->known);
}

TEST(Producers, ANewIncarnationBeginsAnewAndTheOldOneIsRefused) {
  Producers producers;
  ASSERT_TRUE(producers.Record(Key(1, 5, 1), Nobody).ok());
  EXPECT_FALSE(producers.Find(Key(1, 6, 1))->known);
  EXPECT_TRUE(producers.Find(Key(1, 5, 1))->known);
  ASSERT_TRUE(producers.Record(Key(1, 6, 1), Nobody).ok());
  EXPECT_EQ(producers.Find(Key(1, 5, 2)).status().code(), absl::StatusCode::kAborted);
  // What the old one still had waiting says nothing about the new one.
  producers.SetVersion(Key(1, 5, 1), Version(9));
  EXPECT_EQ(producers.Find(Key(1, 6, 1))->version, Version(0));
  producers.SetVersion(Key(1, 6, 1), Version(10));
  EXPECT_EQ(producers.Find(Key(1, 6, 1))->version, Version(10));
}

TEST(Producers, AGroupCountsItsStepsOnOverGenerations) {
  Producers producers;
  const auto step = [](uint64_t generation, uint64_t sequence) {
    PushKey key = Key(1, generation, sequence);
    key.producer.kind = Producer::Kind::kGroup;
    return key;
  };
  ASSERT_TRUE(producers.Record(step(1, 5), Nobody).ok());
  EXPECT_TRUE(producers.Find(step(2, 5))->known);  // Sent again by the members that are left.
  ASSERT_TRUE(producers.Record(step(2, 6), Nobody).ok());
  EXPECT_TRUE(producers.Find(step(2, 5))->known);
  EXPECT_EQ(producers.Find(step(1, 7)).status().code(), absl::StatusCode::kAborted);
  producers.SetVersion(step(1, 5), Version(9));  // It had waited for other groups.
  EXPECT_EQ(producers.Find(step(2, 5))->version, Version(9));
}

TEST(Producers, RememberWhatWasDiscarded) {
  Producers producers;
  ASSERT_TRUE(producers.Record(Key(1, 1, 1), Nobody).ok());
  EXPECT_FALSE(producers.Find(Key(1, 1, 1))->discarded);
  producers.SetDiscarded(Key(1, 1, 1));
  const auto finding = producers.Find(Key(1, 1, 1));
  EXPECT_TRUE(finding->known);
  EXPECT_TRUE(finding->discarded);
  EXPECT_EQ(finding->version, Version());
}

TEST(Producers, RefuseWhatIsTooOldToTell) {
  Producers producers;
  ASSERT_TRUE(producers.Record(Key(1, 1, kDedupWindow + 1), Nobody).ok());
  EXPECT_EQ(producers.Find(Key(1, 1, 1)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Producers, ForgetWhoIsGoneAndWasSilentLongest) {
  Producers producers;
  for (uint64_t id = 1; id <= kProducersPerShardMax; ++id) {
    ASSERT_TRUE(producers.Record(Key(id, 1, 1), Nobody).ok());
  }
  ASSERT_TRUE(producers.Record(Key(1, 1, 2), Nobody).ok());
  const PushKey next = Key(kProducersPerShardMax + 1, 1, 1);
  EXPECT_EQ(producers.Record(next, Nobody).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_FALSE(producers.Find(next)->known);
  EXPECT_TRUE(producers.Record(next, Everybody).ok());
  EXPECT_EQ(producers.size(), kProducersPerShardMax);
  EXPECT_TRUE(producers.Find(Key(1, 1, 1))->known);
  EXPECT_FALSE(producers.Find(Key(2, 1, 1))->known);
}

}  // namespace
}  // namespace covey::server
