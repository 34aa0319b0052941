// SPDX-License-Identifier: Apache-2.0

// Scans of a shard's rows, and of what changed, as its clients see them.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/chain_fixture.h"
#include "server/testing/sparse_fixture.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;
using Code = absl::StatusCode;
using Floats = std::vector<float>;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};

const proto::ScannedRows& Scanned(const Message& reply) {
  return reply.envelope.pull_reply().scanned();
}
uint64_t VersionOf(const Message& reply) { return reply.envelope.pull_reply().state().version(); }

Keys KeysIn(const Message& reply) {
  if (Scanned(reply).rows() == 0) return {};
  const auto keys = reply.frames[0].As<uint64_t>();
  return {keys.begin(), keys.end()};
}
Keys RemovedIn(const Message& reply) {
  if (Scanned(reply).removed() == 0) return {};
  const auto keys = reply.frames.back().As<uint64_t>();
  return {keys.begin(), keys.end()};
}
// By key.
std::map<uint64_t, float> RowsIn(const Message& reply) {
  std::map<uint64_t, float> rows;
  const Keys keys = KeysIn(reply);
  for (size_t i = 0; i < keys.size(); ++i) rows[keys[i]] = reply.frames[1].As<float>()[i];
  return rows;
}

class SparseScan : public ::testing::Test {
 protected:
  // Rows of one element that hold the negative sum of their gradients; two of them at most.
  static void MakeSmall(TestJob& job) {
    MakeSparse(job, 1);
    job.spec().mutable_sparse()->set_rows_max(2);
    job.spec().mutable_sparse()->set_when_full(proto::SparseRows::EVICT);
  }
  Message Push(const Keys& keys) {
    return OfRows(requests_.ClientPush(++pushed_, Floats(keys.size(), -1)), keys);
  }
  Message Scan(std::optional<uint64_t> since = std::nullopt, uint64_t generation = 0,
               uint64_t first = 0) {
    Message message = requests_.Pull();
    proto::RowScan& scan = *message.envelope.mutable_pull_request()->mutable_scan();
    scan.set_first(first);
    scan.set_generation(generation);
    if (since) scan.set_since(*since);
    return message;
  }

  // Makes requests; its own loop is not part of the test.
  ShardDriver requests_{TestJob(kAsync, 2)};
  uint64_t pushed_ = 0;
};

TEST_F(SparseScan, ReadsAllRowsAndThenWhatChanges) {
  TestJob job(kAsync, 2);
  MakeSmall(job);
  ShardDriver driver(job);
  driver.Ask(Push({3}));
  driver.Ask(Push({3, 5}));
  const Message all = driver.Ask(Scan());
  EXPECT_THAT(RowsIn(all), UnorderedElementsAre(std::pair(3, 2), std::pair(5, 1)));
  EXPECT_THAT(RemovedIn(all), IsEmpty());
  EXPECT_EQ(Scanned(all).last(), ~uint64_t{0});
  EXPECT_EQ(VersionOf(all), 2);
  EXPECT_EQ(all.envelope.pull_reply().state().generation(), kTestGeneration);
  EXPECT_THAT(driver.Ask(Scan(2)).frames, IsEmpty());
  // One of the two makes room.
  driver.Ask(Push({6}));
  const Message changes = driver.Ask(Scan(2, kTestGeneration));
  EXPECT_THAT(RowsIn(changes), ElementsAre(std::pair(6, 1)));
  ASSERT_THAT(RemovedIn(changes), SizeIs(1));
  EXPECT_EQ(changes.envelope.frame_checksums_size(), 3);
  const uint64_t gone = RemovedIn(changes)[0];
  EXPECT_TRUE(gone == 3 || gone == 5);
  // Another one comes back, and is a new row.
  driver.Ask(Push({gone}));
  EXPECT_THAT(RowsIn(driver.Ask(Scan(3))), ElementsAre(std::pair(gone, 1)));
}

TEST_F(SparseScan, AReaderThatIsTooFarBehindReadsAllAgain) {
  TestJob job(kAsync, 2);
  MakeSmall(job);
  ShardDriver driver(job);
  // From the third one on, each takes the place of another; 1,024 of these are known.
  for (uint64_t key = 0; key < 1100; ++key) driver.Ask(Push({key}));
  const absl::Status behind = StatusOf(driver.Ask(Scan(1)));
  EXPECT_EQ(behind.code(), Code::kOutOfRange);
  EXPECT_THAT(std::string(behind.message()), HasSubstr("pull table=weights shard=0"));
  EXPECT_THAT(std::string(behind.message()), HasSubstr("known after version 76 only; read all"));
  EXPECT_THAT(RemovedIn(driver.Ask(Scan(76))), SizeIs(1024));
  const absl::Status ahead = StatusOf(driver.Ask(Scan(1101)));
  EXPECT_EQ(ahead.code(), Code::kOutOfRange);
  EXPECT_THAT(std::string(ahead.message()), HasSubstr("of another history"));
  const absl::Status lost = StatusOf(driver.Ask(Scan(1100, kTestGeneration + 1)));
  EXPECT_EQ(lost.code(), Code::kOutOfRange);
  EXPECT_THAT(std::string(lost.message()), HasSubstr("was lost and made again"));
}

TEST_F(SparseScan, PiecesAreBounded) {
  TestJob job(kAsync, 2);
  constexpr size_t kWidth = 4096;
  MakeSparse(job, kWidth);
  ShardDriver driver(job);
  Keys keys;
  for (uint64_t key = 0; key < 200; ++key) keys.push_back(key);
  driver.Ask(OfRows(requests_.ClientPush(++pushed_, Floats(keys.size() * kWidth, 1)), keys));
  Keys read;
  size_t pieces = 0;
  for (uint64_t first = 0;; ++pieces) {
    const Message reply = driver.Ask(Scan(std::nullopt, 0, first));
    ASSERT_TRUE(StatusOf(reply).ok());
    for (const Buffer& frame : reply.frames) EXPECT_LE(frame.size(), kScanBytesMax);
    for (const uint64_t key : KeysIn(reply)) read.push_back(key);
    if (Scanned(reply).last() == ~uint64_t{0}) break;
    first = Scanned(reply).last() + 1;
  }
  EXPECT_EQ(pieces, 3);
  ASSERT_THAT(read, SizeIs(200));
  for (size_t i = 1; i < read.size(); ++i) EXPECT_LT(MixBits(read[i - 1]), MixBits(read[i]));
}

TEST_F(SparseScan, WhatIsWrongIsNamed) {
  TestJob job(kAsync, 2);
  MakeSmall(job);
  proto::Table& table = *job.view.mutable_tables(0);
  table.mutable_shards(0)->set_element_count(kKeySlots / 2);
  *table.add_shards() = table.shards(0);
  table.mutable_shards(1)->set_index(1);
  table.mutable_shards(1)->set_first_element(kKeySlots / 2);
  ShardDriver driver(job);
  const auto refused = [&](ShardDriver& by, const Message& message, absl::string_view why) {
    const absl::Status status = StatusOf(by.Ask(message));
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << why;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(why)));
  };
  refused(driver, Scan(std::nullopt, 0, uint64_t{1} << 63), "from slot 32768 on");
  refused(driver, OfRows(Scan(), {3}), "without keys");
  Message slots = Scan();
  slots.envelope.mutable_pull_request()->set_with_slots(true);
  refused(driver, slots, "without the optimizer's state");
  ShardDriver dense(TestJob(kAsync, 2));
  refused(dense, Scan(), "those of a sparse table");
  EXPECT_TRUE(StatusOf(driver.Ask(Scan(0, kTestGeneration, (uint64_t{1} << 63) - 1))).ok());
}

TEST_F(SparseScan, WaitsUntilTheShardIsFreshEnough) {
  TestJob job(kAsync, 2);
  MakeSmall(job);
  ShardDriver driver(job);
  Message scan = Scan(0);
  scan.envelope.mutable_pull_request()->mutable_read()->set_min_version(1);
  EXPECT_THAT(driver.Deliver(scan), IsEmpty());
  const std::vector<Message> sent = driver.Deliver(Push({3}));
  ASSERT_THAT(sent, SizeIs(2));
  const Message& reply = sent[sent[0].envelope.has_pull_reply() ? 0 : 1];
  EXPECT_THAT(RowsIn(reply), ElementsAre(std::pair(3, 1)));
}

TEST_F(SparseScan, WhatIsReadIsDurableAndSurvivesTheHead) {
  ChainDriver chain(kAsync, 2, 3, 2);
  MakeSmall(chain.job);
  chain.PublishToAll();
  chain.Ask(0, Push({3, 5}));
  chain.Ask(0, Push({6}));
  // Updates do not reach the second replica: the piece shows them, and waits.
  bool is_cut_off = true;
  chain.lose = [&](const Message& message) {
    return is_cut_off && message.envelope.has_replicate_request();
  };
  chain.Deliver(0, Push({7}));
  chain.Deliver(0, Scan(1));
  chain.Settle();
  EXPECT_THAT(chain.Answers(), IsEmpty());
  is_cut_off = false;
  chain.Pass(absl::Milliseconds(500));
  std::vector<Message> answers = chain.Answers();
  ASSERT_THAT(answers, SizeIs(2));
  const Message shown = answers[answers[0].envelope.has_pull_reply() ? 0 : 1];
  EXPECT_EQ(VersionOf(shown), 3);
  EXPECT_THAT(RemovedIn(shown), SizeIs(2));
  // The next head has seen the same rows go.
  chain.Kill(0);
  chain.SetChain({{1, false}, {2, true}});
  chain.PublishToAll();
  chain.Pass(absl::Milliseconds(500));
  const Message again = chain.Ask(1, Scan(1, chain.generation));
  EXPECT_EQ(RowsIn(again), RowsIn(shown));
  EXPECT_EQ(RemovedIn(again), RemovedIn(shown));
  // A server that was filled knows what has gone since.
  chain.SetChain({{2, false}});
  chain.PublishToAll();
  chain.Pass(absl::Milliseconds(500));
  EXPECT_EQ(StatusOf(chain.Ask(2, Scan(1, chain.generation))).code(), Code::kOutOfRange);
  EXPECT_TRUE(StatusOf(chain.Ask(2, Scan(3, chain.generation))).ok());
}

}  // namespace
}  // namespace covey::server
