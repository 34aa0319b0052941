#include "server/producers.h"

#include "common/cluster/limits.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using Verdict = DedupWindow::Verdict;

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
  EXPECT_EQ(producers.Find(key)->verdict, Verdict::kDuplicate);
  key.producer.kind = Producer::Kind::kGroup;
  EXPECT_EQ(producers.Find(key)->verdict, Verdict::kNew);
}

TEST(Producers, ANewIncarnationBeginsAnewAndTheOldOneIsRefused) {
  Producers producers;
  ASSERT_TRUE(producers.Record(Key(1, 5, 1), Nobody).ok());
  EXPECT_EQ(producers.Find(Key(1, 6, 1))->verdict, Verdict::kNew);
  EXPECT_EQ(producers.Find(Key(1, 5, 1))->verdict, Verdict::kDuplicate);
  ASSERT_TRUE(producers.Record(Key(1, 6, 1), Nobody).ok());
  EXPECT_EQ(producers.Find(Key(1, 5, 2)).status().code(), absl::StatusCode::kAborted);
  // What the old one still had waiting says nothing about the new one.
  producers.SetVersion(Key(1, 5, 1), Version(9));
  EXPECT_EQ(producers.Find(Key(1, 6, 1))->version, Version(0));
  producers.SetVersion(Key(1, 6, 1), Version(10));
  EXPECT_EQ(producers.Find(Key(1, 6, 1))->version, Version(10));
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
  EXPECT_EQ(producers.Find(next)->verdict, Verdict::kNew);
  EXPECT_TRUE(producers.Record(next, Everybody).ok());
  EXPECT_EQ(producers.size(), kProducersPerShardMax);
  EXPECT_EQ(producers.Find(Key(1, 1, 1))->verdict, Verdict::kDuplicate);
  EXPECT_EQ(producers.Find(Key(2, 1, 1))->verdict, Verdict::kNew);
}

}  // namespace
}  // namespace covey::server
