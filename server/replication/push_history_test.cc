// SPDX-License-Identifier: Apache-2.0
#include "server/replication/push_history.h"

#include <optional>
#include <vector>

#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;

PushKey Key(uint64_t id, uint64_t incarnation, uint64_t sequence) {
  return {.producer = {.kind = Producer::Kind::kClient, .id = id},
          .incarnation = incarnation,
          .sequence = sequence};
}

TEST(PushHistory, TellClientsFromGroupsOfTheSameNumber) {
  PushHistory producers;
  PushKey key = Key(1, 1, 1);
  producers.Note(key, Version(0));
  EXPECT_TRUE(producers.Find(key)->known);
  key.producer.kind = Producer::Kind::kGroup;
  EXPECT_FALSE(producers.Find(key)->known);
}

TEST(PushHistory, ANewIncarnationBeginsAnewAndTheOldOneIsRefused) {
  PushHistory producers;
  producers.Note(Key(1, 5, 1), Version(0));
  EXPECT_FALSE(producers.Find(Key(1, 6, 1))->known);
  EXPECT_TRUE(producers.Find(Key(1, 5, 1))->known);
  producers.Note(Key(1, 6, 1), Version(0));
  EXPECT_EQ(producers.Find(Key(1, 5, 2)).status().code(), absl::StatusCode::kAborted);
  // Waiting pushes of the old incarnation say nothing about the new one.
  producers.Note(Key(1, 5, 1), Version(9));
  EXPECT_EQ(producers.Find(Key(1, 6, 1))->version, Version(0));
  producers.Note(Key(1, 6, 1), Version(10));
  EXPECT_EQ(producers.Find(Key(1, 6, 1))->version, Version(10));
}

TEST(PushHistory, AGroupCountsItsStepsOnOverGenerations) {
  PushHistory producers;
  const auto step = [](uint64_t generation, uint64_t sequence) {
    PushKey key = Key(1, generation, sequence);
    key.producer.kind = Producer::Kind::kGroup;
    return key;
  };
  producers.Note(step(1, 5), Version(0));
  EXPECT_TRUE(producers.Find(step(2, 5))->known);  // resent by the remaining members
  producers.Note(step(2, 6), Version(0));
  EXPECT_TRUE(producers.Find(step(2, 5))->known);
  EXPECT_EQ(producers.Find(step(1, 7)).status().code(), absl::StatusCode::kAborted);
  producers.Note(step(1, 5), Version(9));  // it had waited for other groups
  EXPECT_EQ(producers.Find(step(2, 5))->version, Version(9));
}

TEST(PushHistory, RememberWhatWasDiscarded) {
  PushHistory producers;
  producers.Note(Key(1, 1, 1), Version(0));
  EXPECT_FALSE(producers.Find(Key(1, 1, 1))->discarded);
  producers.NoteDiscarded(Key(1, 1, 1));
  const auto finding = producers.Find(Key(1, 1, 1));
  EXPECT_TRUE(finding->known);
  EXPECT_TRUE(finding->discarded);
  EXPECT_EQ(finding->version, Version());
}

TEST(PushHistory, RefuseWhatIsTooOldToTell) {
  PushHistory producers;
  producers.Note(Key(1, 1, kDedupWindow + 1), Version(0));
  EXPECT_EQ(producers.Find(Key(1, 1, 1)).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(PushHistory, ForgetsWhoIsGoneButForTheNewest) {
  PushHistory producers;
  for (const uint64_t id : {3, 1, 2, 3}) producers.Note(Key(id, 1, id), Version(1));
  const auto all = [](const Producer&) { return true; };
  EXPECT_THAT(producers.Forgettable([](const Producer&) { return false; }), IsEmpty());
  EXPECT_THAT(producers.Forgettable(all),
              ElementsAre(Field(&Producer::id, 1), Field(&Producer::id, 2)));
  producers.Forget({.kind = Producer::Kind::kClient, .id = 1});
  EXPECT_FALSE(producers.Find(Key(1, 1, 1))->known);
  EXPECT_THAT(producers.Forgettable(all), ElementsAre(Field(&Producer::id, 2)));
}

// A push below the window of pushes noted since it was received.
TEST(PushHistory, LeaveOutWhatHasGrownTooOld) {
  PushHistory producers;
  producers.Note(Key(1, 1, 2 * kDedupWindow), Version(1));
  producers.Note(Key(1, 1, 1), Version(2));
  EXPECT_FALSE(producers.Find(Key(1, 1, 1)).ok());
}

std::vector<proto::ProducerRecord> Described(const PushHistory& producers) {
  std::vector<proto::ProducerRecord> records;
  producers.Describe([&](proto::ProducerRecord record) { records.push_back(std::move(record)); });
  return records;
}

TEST(PushHistory, AnswerAlikeOnceRestored) {
  PushHistory producers;
  for (uint64_t sequence = 1; sequence <= 3 * kDedupWindow; sequence += 3) {
    producers.Note(Key(1, 7, sequence), Version(sequence));
  }
  producers.NoteDiscarded(Key(2, 8, 5));
  PushKey group = Key(1, 2, 9);
  group.producer.kind = Producer::Kind::kGroup;
  producers.Note(group, Version(3));

  PushHistory restored;
  for (const proto::ProducerRecord& record : Described(producers)) {
    ASSERT_TRUE(restored.Restore(record).ok());
  }
  EXPECT_EQ(restored.Digest(), producers.Digest());
  EXPECT_TRUE(restored.Find(Key(2, 8, 5))->discarded);
  EXPECT_EQ(restored.Find(group)->version, Version(3));
  EXPECT_FALSE(restored.Find(Key(1, 6, 1)).ok());
  for (uint64_t sequence = 1; sequence <= 3 * kDedupWindow + 5; ++sequence) {
    const auto before = producers.Find(Key(1, 7, sequence));
    const auto after = restored.Find(Key(1, 7, sequence));
    ASSERT_EQ(before.ok(), after.ok()) << sequence;
    if (before.ok()) {
      ASSERT_EQ(before->known, after->known) << sequence;
    }
  }
  // They continue alike, too.
  producers.Note(Key(4, 1, 1), Version(20));
  restored.Note(Key(4, 1, 1), Version(20));
  EXPECT_EQ(restored.Digest(), producers.Digest());
}

TEST(PushHistory, KnowsTheUsualNormOfProducers) {
  PushHistory producers;
  const auto all = [](const Producer&) { return true; };
  const auto push = [&](uint64_t producer, float norm, int times, bool is_beyond = false) {
    for (int i = 0; i < times; ++i) {
      producers.NoteNorm(Producer{.id = producer}, norm, is_beyond);
    }
  };
  for (uint64_t id = 1; id <= 4; ++id) producers.Note(Key(id, 1, 1), Version(1));
  push(9, 1, 8);  // it has pushed nothing else
  push(1, 3, 7);
  EXPECT_EQ(producers.UsualNorm(all), std::nullopt);
  push(1, 3, 1);
  EXPECT_EQ(producers.UsualNorm(all), 3);
  push(2, 5, 8);
  EXPECT_EQ(producers.UsualNorm(all), 3) << "the lower of two";
  push(3, 1e30f, 8, true);
  EXPECT_EQ(producers.UsualNorm(all), 5);
  EXPECT_EQ(producers.UsualNorm([](const Producer& each) { return each.id != 2; }), 3);
  std::vector<uint64_t> beyond;
  producers.ForEachNorm(
      [&](const Producer&, const PushNorms& norms) { beyond.push_back(norms.beyond_in_row()); });
  EXPECT_EQ(beyond, (std::vector<uint64_t>{0, 0, 8}));

  PushHistory restored;
  for (const proto::ProducerRecord& record : Described(producers)) {
    ASSERT_TRUE(restored.Restore(record).ok());
  }
  EXPECT_EQ(restored.Digest(), producers.Digest());
  EXPECT_EQ(restored.UsualNorm(all), 5);
  const uint64_t before = producers.Digest();
  push(4, 2, 1);
  EXPECT_NE(producers.Digest(), before);
  restored.ForgetNorms();
  EXPECT_EQ(restored.UsualNorm(all), std::nullopt);
}

TEST(PushHistory, OneWildPushMovesTheUsualNormLittle) {
  PushNorms norms;
  for (int i = 0; i < 20; ++i) norms.Note(1, false);
  norms.Note(1e6f, true);
  EXPECT_LT(norms.usual(), 6);
  for (int i = 0; i < 20; ++i) norms.Note(1, false);
  EXPECT_NEAR(norms.usual(), 1, 0.2);
  EXPECT_EQ(norms.pushes(), 41u);
  EXPECT_EQ(norms.beyond(), 1u);
  EXPECT_EQ(norms.beyond_in_row(), 0u);
}

TEST(PushHistory, RefuseRecordsThatNobodyDescribes) {
  PushHistory producers;
  producers.Note(Key(1, 7, 3), Version(1));
  producers.Note(Key(1, 7, 5), Version(2));
  std::vector<proto::ProducerRecord> wrong(7, Described(producers)[0]);
  wrong[0].set_sequences(1, 2);
  wrong[1].add_sequences(9);
  wrong[2].set_window_begin(1);
  wrong[3].set_sequences(0, 0);
  PushNorms norms;
  norms.Note(1, false);
  for (int i = 4; i < 7; ++i) *wrong[i].mutable_norms() = norms.ToProto();
  wrong[4].mutable_norms()->set_usual_bits(0x7fc00000);
  wrong[5].mutable_norms()->set_pushes(0);
  wrong[6].mutable_norms()->set_beyond(2);
  for (const proto::ProducerRecord& record : wrong) {
    PushHistory restored;
    EXPECT_FALSE(restored.Restore(record).ok()) << record.ShortDebugString();
  }
  EXPECT_FALSE(producers.Restore(Described(producers)[0]).ok()) << "twice";
}

}  // namespace
}  // namespace covey::server
