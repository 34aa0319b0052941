// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/chain_fixture.h"
#include "server/testing/sparse_fixture.h"

// Pushes and pulls of rows, and the chain that holds them.

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;
using Floats = std::vector<float>;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr Contract kBuffered2{.kind = Contract::Kind::kBuffered, .buffer = 2};
constexpr Contract kBsp{.kind = Contract::Kind::kBsp};
constexpr Contract kLocal{.kind = Contract::Kind::kLocal, .local_steps = 4};

TestJob SparseJob(const Contract& contract, uint32_t groups = 2,
                  proto::SparseRows::RoundMean mean = proto::SparseRows::OF_ALL_PUSHES) {
  TestJob job(contract, groups);
  MakeSparse(job, 2);
  job.spec().mutable_sparse()->set_round_mean(mean);
  return job;
}

Floats ValuesIn(const Message& reply) { return ShardDriver::ValuesIn(reply); }
const proto::PushReply& Pushed(const Message& reply) { return reply.envelope.push_reply(); }

class SparseRequests : public ::testing::Test {
 protected:
  Message Push(uint64_t sequence, const Keys& keys, const Floats& gradient) {
    return OfRows(requests_.ClientPush(sequence, gradient), keys);
  }
  Message GroupPush(uint32_t group, uint64_t step, const Keys& keys, const Floats& gradient,
                    uint64_t samples = 1) {
    return OfRows(requests_.GroupPush(group, step, gradient, samples), keys);
  }
  Message Pull(const Keys& keys) { return OfRows(requests_.Pull(), keys); }

  // Makes requests; its own loop is not part of the test.
  ShardDriver requests_{TestJob(kAsync, 2)};
};

TEST_F(SparseRequests, RowsAreMadeByPushesOnly) {
  TestJob job = SparseJob(kAsync);
  job.spec().mutable_initializer()->set_kind(proto::Initializer::CONSTANT);
  job.spec().mutable_initializer()->set_a(5);
  ShardDriver driver(job);
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 9}))), ElementsAre(5, 5, 5, 5));
  EXPECT_EQ(Pushed(driver.Ask(Push(1, {3}, {1, 2}))).applied_version(), 1);
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 9}))), ElementsAre(4, 3, 5, 5));
  const ShardContent& content =
      *driver.actor().FindReplica({TableId(kTestTable), ShardIndex(0)})->content();
  EXPECT_EQ(content.sparse()->rows(), 1);
  // No keys: no rows; and a push without any is an update.
  EXPECT_THAT(driver.Ask(Pull({})).frames, IsEmpty());
  EXPECT_EQ(Pushed(driver.Ask(Push(2, {}, {}))).applied_version(), 2);
  EXPECT_TRUE(Pushed(driver.Ask(Push(2, {}, {}))).duplicate());
}

TEST_F(SparseRequests, APushCanReadItsRows) {
  ShardDriver driver(SparseJob(kAsync));
  const Message reply =
      driver.Ask(ShardDriver::WithValues(Push(1, {3, 1'000'000'007}, {1, 2, 3, 4}), 0));
  EXPECT_TRUE(Pushed(reply).has_values());
  EXPECT_THAT(ValuesIn(reply), ElementsAre(-1, -2, -3, -4));
}

TEST_F(SparseRequests, ARepeatedPushIsNotAppliedTwice) {
  ShardDriver driver(SparseJob(kAsync));
  driver.Ask(Push(1, {3}, {1, 2}));
  const Message again = driver.Ask(Push(1, {3}, {1, 2}));
  EXPECT_TRUE(Pushed(again).duplicate());
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3}))), ElementsAre(-1, -2));
  // A query may have the keys of rows that it wants, and no gradient.
  Message query = ShardDriver::WithValues(Push(1, {3}, {1, 2}), 0);
  query.frames.pop_back();
  query.envelope.clear_frame_checksums();
  EXPECT_THAT(ValuesIn(driver.Ask(query)), ElementsAre(-1, -2));
  Message unknown = Push(7, {3}, {1, 2});
  unknown.frames.clear();
  unknown.envelope.clear_frame_checksums();
  EXPECT_EQ(StatusOf(driver.Ask(unknown)).code(), Code::kUnavailable);
}

TEST_F(SparseRequests, RowsOfInt8HaveAScaleEach) {
  ShardDriver driver(SparseJob(kAsync));
  const std::vector<float> rows = {1270, 635, 1, 2};
  Message push = Push(1, {3, 1'000'000'007}, rows);
  push.envelope.mutable_push_request()->set_format(proto::WIRE_INT8_BLOCK);
  Buffer encoded = Buffer::Allocate(EncodedRowBytes(WireFormat::kInt8Block, 2, 2));
  EncodeRows(WireFormat::kInt8Block, 2, rows, {encoded.MutableData(), encoded.size()});
  push.frames[1] = encoded;
  push.envelope.clear_frame_checksums();
  SetFrameChecksums(push);
  EXPECT_EQ(Pushed(driver.Ask(push)).applied_version(), 1);
  // Each to 1/254 of the largest of its own row.
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 1'000'000'007}))),
              ElementsAre(FloatNear(-1270, 1), FloatNear(-635, 5.1f), FloatNear(-1, 0.008f),
                          FloatNear(-2, 0.001f)));
}

TEST_F(SparseRequests, WhatIsWrongIsNamedAndChangesNothing) {
  ShardDriver driver(SparseJob(kAsync));
  driver.Ask(Push(1, {3}, {1, 2}));
  const auto refused = [&](Message message, absl::string_view why) {
    message.envelope.clear_frame_checksums();
    SetFrameChecksums(message);
    const absl::Status status = StatusOf(driver.Ask(message));
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << why;
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(why)));
  };
  refused(requests_.ClientPush(2, {1, 2}), "the table is sparse");
  refused(requests_.Pull(), "the table is sparse");
  refused(Push(2, {3, 4}, {1, 2}), "the push names 2 keys");
  refused(Push(2, {3}, {1, NAN}), "column 1 of key 3");
  Message int8 = Push(2, {3}, {1, 2});
  int8.envelope.mutable_push_request()->set_format(proto::WIRE_INT8_BLOCK);
  refused(int8, "a row of 2 elements as int8");
  Message descending = Push(2, {3, 4}, {1, 2, 3, 4});
  const Keys keys = {4, 3};
  descending.frames[0] =
      Buffer::CopyOf({reinterpret_cast<const uint8_t*>(keys.data()), keys.size() * 8});
  descending.envelope.mutable_push_request()->mutable_keys()->set_encoding(proto::KeyList::PLAIN);
  refused(descending, "key 1 of the list is not greater");
  Message pull = Pull({3, 4});
  pull.envelope.mutable_pull_request()->mutable_keys()->set_count(3);
  refused(pull, "the request names 3 keys");
  pull.envelope.mutable_pull_request()->mutable_keys()->set_count(
      std::numeric_limits<uint32_t>::max());
  refused(pull, "does not hold them");
  pull = Pull({3});
  pull.envelope.mutable_pull_request()->set_with_slots(true);
  refused(pull, "can not be pulled");
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3}))), ElementsAre(-1, -2));

  Message bent = Push(2, {3}, {1, 2});
  bent.envelope.set_frame_checksums(0, 1);
  EXPECT_EQ(StatusOf(driver.Ask(bent)).code(), Code::kUnavailable);
  bent = Pull({3});
  bent.envelope.set_frame_checksums(0, 1);
  EXPECT_EQ(StatusOf(driver.Ask(bent)).code(), Code::kUnavailable);

  ShardDriver dense(TestJob(kAsync, 2));
  EXPECT_EQ(StatusOf(dense.Ask(Push(1, {3}, {1, 2}))).code(), Code::kInvalidArgument);
  EXPECT_EQ(StatusOf(dense.Ask(Pull({3}))).code(), Code::kInvalidArgument);
}

TEST_F(SparseRequests, KeysOfOtherShardsAreRefused) {
  TestJob job = SparseJob(kAsync);
  proto::Table& table = *job.view.mutable_tables(0);
  table.mutable_shards(0)->set_element_count(kKeySlots / 2);
  *table.add_shards() = table.shards(0);
  table.mutable_shards(1)->set_index(1);
  table.mutable_shards(1)->set_first_element(kKeySlots / 2);
  ShardDriver driver(job);
  int refused = 0;
  for (uint64_t key = 0; key < 20; ++key) {
    const absl::Status push = StatusOf(driver.Ask(Push(key + 1, {key}, {1, 2})));
    const absl::Status pull = StatusOf(driver.Ask(Pull({key})));
    EXPECT_EQ(push.code(), pull.code());
    if (push.ok()) continue;
    ++refused;
    EXPECT_THAT(std::string(push.message()), HasSubstr("route it by the newest view"));
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 20);
}

TEST_F(SparseRequests, PushesOfAnUpdateAddUpByKey) {
  ShardDriver driver(SparseJob(kBuffered2));
  driver.Ask(Push(1, {3, 5}, {1, 2, 3, 4}));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 5, 7}))), ElementsAre(0, 0, 0, 0, 0, 0));
  driver.Ask(Push(2, {5, 7}, {10, 20, 30, 40}));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 5, 7}))), ElementsAre(-0.5, -1, -6.5, -12, -15, -20));
}

TEST_F(SparseRequests, GroupsWithoutRowsTakePartInASynchronousStep) {
  ShardDriver driver(SparseJob(kBsp));
  EXPECT_THAT(driver.Deliver(GroupPush(1, 1, {3}, {1, 2})), SizeIs(1));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3}))), ElementsAre(0, 0));
  driver.Deliver(GroupPush(2, 1, {}, {}));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3}))), ElementsAre(-0.5, -1));
  // A step in which no group has examples makes no update.
  driver.Deliver(GroupPush(1, 2, {}, {}, 0));
  driver.Deliver(GroupPush(2, 2, {}, {}, 0));
  EXPECT_EQ(driver.Ask(Pull({3})).envelope.pull_reply().state().version(), 1);
}

// As that of a dense table, the mean of a row's changes is over all pushes of the round.
TEST_F(SparseRequests, ARowMovesByTheMeanOfAllGroups) {
  ShardDriver driver(SparseJob(kLocal, 3));
  driver.Deliver(GroupPush(1, 1, {3, 5}, {1, 2, 4, 8}, 1));
  driver.Deliver(GroupPush(2, 1, {5}, {36, 72}, 3));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 5, 7}))), ElementsAre(0, 0, 0, 0, 0, 0));
  driver.Deliver(GroupPush(3, 1, {}, {}, 4));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 5, 7}))), ElementsAre(-0.125, -0.25, -5, -10, 0, 0));
}

// Where the table says so, it is over the groups that touched the row.
TEST_F(SparseRequests, ARowMovesByTheMeanOfTheGroupsThatTouchedIt) {
  ShardDriver driver(SparseJob(kLocal, 3, proto::SparseRows::OF_HOLDERS));
  driver.Deliver(GroupPush(1, 1, {3, 5}, {1, 2, 4, 8}, 1));
  driver.Deliver(GroupPush(2, 1, {5}, {36, 72}, 3));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 5, 7}))), ElementsAre(0, 0, 0, 0, 0, 0));
  // A group without rows takes part in the round.
  driver.Deliver(GroupPush(3, 1, {}, {}, 4));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 5, 7}))), ElementsAre(-1, -2, -10, -20, 0, 0));
  const ShardContent& content =
      *driver.actor().FindReplica({TableId(kTestTable), ShardIndex(0)})->content();
  EXPECT_EQ(content.samples(), 8);
  // In the next round another row moves, and these stay.
  driver.Deliver(GroupPush(1, 2, {}, {}, 1));
  driver.Deliver(GroupPush(2, 2, {}, {}, 0));
  driver.Deliver(GroupPush(3, 2, {7}, {6, 9}, 3));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 5, 7}))), ElementsAre(-1, -2, -10, -20, -2, -3));
  EXPECT_EQ(content.sparse()->rows(), 3);
}

TEST_F(SparseRequests, ALateChangeOfRowsCountsInTheNextRound) {
  Contract contract = kLocal;
  contract.quorum = 2;
  ShardDriver driver(SparseJob(contract, 3, proto::SparseRows::OF_HOLDERS));
  driver.Deliver(GroupPush(1, 1, {3, 5}, {1, 2, 3, 4}));
  driver.Deliver(GroupPush(2, 1, {}, {}));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 5}))), ElementsAre(-1, -2, -3, -4));
  driver.Deliver(GroupPush(3, 1, {3}, {10, 20}));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 5}))), ElementsAre(-1, -2, -3, -4));
  driver.Deliver(GroupPush(1, 2, {3, 5}, {2, 4, 1, 1}));
  driver.Deliver(GroupPush(2, 2, {}, {}));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 5}))), ElementsAre(-7, -14, -4, -5));
}

// The keys of readers take memory while these wait for a push.
TEST_F(SparseRequests, ReadersThatWaitKeepNoPushOutAndOnlySoManyWait) {
  ShardDriver driver(SparseJob(kAsync), {.queued_bytes_max = 24});
  Message pull = Pull({3, 5});
  pull.envelope.mutable_pull_request()->mutable_read()->set_min_version(1);
  for (uint64_t id = 1; id <= 2; ++id) {
    pull.envelope.mutable_header()->set_request_id(id);
    EXPECT_THAT(driver.Deliver(pull), IsEmpty());
  }
  pull.envelope.mutable_header()->set_request_id(3);
  const Message full = driver.Ask(pull);
  EXPECT_EQ(StatusOf(full).code(), Code::kResourceExhausted);
  EXPECT_THAT(std::string(StatusOf(full).message()),
              HasSubstr("32 bytes wait in this loop, 24 are allowed"));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3}))), ElementsAre(0, 0)) << "it does not wait";
  EXPECT_THAT(driver.Deliver(Push(1, {3}, {1, 2})), SizeIs(3));
}

TEST_F(SparseRequests, ATableThatIsFullSaysSo) {
  TestJob job = SparseJob(kAsync);
  job.spec().mutable_sparse()->set_rows_max(2);
  ShardDriver driver(job);
  EXPECT_EQ(Pushed(driver.Ask(Push(1, {3, 5}, {1, 2, 3, 4}))).rows_refused(), 0);
  EXPECT_EQ(Pushed(driver.Ask(Push(2, {3, 4, 6}, {1, 1, 2, 2, 3, 3}))).rows_refused(), 2);
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 4, 5, 6}))), ElementsAre(-2, -3, 0, 0, -3, -4, 0, 0));
}

TEST_F(SparseRequests, AFullTableThatEvictsMakesRoomFirst) {
  TestJob job = SparseJob(kAsync);
  job.spec().mutable_sparse()->set_rows_max(2);
  job.spec().mutable_sparse()->set_when_full(proto::SparseRows::EVICT);
  ShardDriver driver(job);
  driver.Ask(Push(1, {3}, {1, 2}));
  driver.Ask(Push(2, {5}, {3, 4}));
  EXPECT_EQ(Pushed(driver.Ask(Push(3, {6}, {5, 6}))).rows_refused(), 0);
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 5, 6}))), ElementsAre(0, 0, -3, -4, -5, -6));
  // The key comes back, as a new one.
  driver.Ask(Push(4, {3}, {7, 8}));
  EXPECT_THAT(ValuesIn(driver.Ask(Pull({3, 5, 6}))), ElementsAre(-7, -8, 0, 0, -5, -6));
  const std::optional<proto::TableRows> report =
      driver.actor().FindShard({TableId(kTestTable), ShardIndex(0)})->ReportRows();
  EXPECT_EQ(report->rows(), 2);
  EXPECT_EQ(report->evicted(), 2);
  EXPECT_EQ(report->refused(), 0);
}

// Values of a table of 2 bytes travel as they are stored.
TEST_F(SparseRequests, RowsOfTwoBytesTravelSo) {
  for (const auto& [type, format] : {std::pair(proto::BFLOAT16, WireFormat::kBfloat16),
                                     std::pair(proto::FLOAT16, WireFormat::kFloat16)}) {
    TestJob job = SparseJob(kAsync);
    job.spec().set_data_type(type);
    job.spec().mutable_initializer()->set_kind(proto::Initializer::CONSTANT);
    job.spec().mutable_initializer()->set_a(1.001f);
    ShardDriver driver(job);
    const auto decoded = [&](const Message& reply) {
      Floats values(reply.frames[0].size() / 2);
      Decode(format, reply.frames[0].bytes(), values);
      return values;
    };
    const Message reply =
        driver.Ask(ShardDriver::WithValues(Push(1, {3, 1'000'000'007}, {1, 2, 3, -4}), 0));
    EXPECT_TRUE(Pushed(reply).has_values());
    // First values are the nearest to 1.001.
    const float first = type == proto::FLOAT16 ? 1 + 0x1p-10f : 1;
    EXPECT_THAT(decoded(reply),
                ElementsAre(first - 1, first - 2, first - 3,
                            FloatNear(first + 4, type == proto::FLOAT16 ? 4e-3f : 0)));
    EXPECT_THAT(decoded(driver.Ask(Pull({3, 5}))), ElementsAre(first - 1, first - 2, first, first));
  }
}

class SparseChain : public SparseRequests {
 protected:
  // Of one server; the second can join.
  void Begin(ChainDriver& chain, uint32_t width) {
    MakeSparse(chain.job, width);
    chain.job.spec().mutable_optimizer()->set_kind(proto::Optimizer::ADAM);
    chain.PublishToAll();
  }
  // The second server joins while pushes change rows that were sent and rows that were not.
  void Join(ChainDriver& chain);
  static bool IsRows(const Message& message) {
    return message.envelope.has_replica_piece() &&
           message.envelope.replica_piece().kind() == proto::ReplicaPiece::ROWS;
  }
};

TEST_F(SparseChain, ReplicasHoldTheSameRows) {
  ChainDriver chain(kBuffered2, 2, 3, 3);
  Begin(chain, 2);
  for (uint64_t sequence = 1; sequence <= 200; ++sequence) {
    Keys keys = {sequence % 7, 100 + sequence % 30, 1'000'000'000 + sequence};
    Message push = Push(sequence, keys, {1, 2, 3, 4, 5, 6});
    if (sequence % 3 == 0) {
      push.envelope.mutable_push_request()->set_format(proto::WIRE_FLOAT16);
      push.frames[1] = Buffer::CopyOf(std::vector<uint8_t>(12, 0x3c));
      push.envelope.clear_frame_checksums();
    }
    chain.Deliver(0, push);
    chain.Settle();
    for (const Message& reply : chain.Answers()) ASSERT_TRUE(StatusOf(reply).ok());
  }
  EXPECT_EQ(chain.replica(2).content()->sparse()->rows(), 237);
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
  EXPECT_EQ(chain.Digest(0), chain.Digest(2));
  EXPECT_EQ(chain.replica(2).state(), ReplicaState::kJoined);
}

// Whatever a row's mean is over, the record says it to all replicas.
TEST_F(SparseChain, ReplicasTakeTheSameMeansOfRounds) {
  ChainDriver chain(kLocal, 3, 2, 2);
  chain.job.spec().mutable_sparse()->set_round_mean(proto::SparseRows::OF_HOLDERS);
  Begin(chain, 2);
  Random random(11);
  for (uint64_t round = 1; round <= 60; ++round) {
    for (uint32_t group = 1; group <= 3; ++group) {
      Keys keys;
      Floats change;
      for (uint64_t key = 0; key < 40; ++key) {
        if (!random.Chance(0.3)) continue;
        keys.push_back(key);
        for (int c = 0; c < 2; ++c) change.push_back(static_cast<float>(random.Uniform() - 0.5));
      }
      const uint64_t samples = random.Below(4) + (group == 1 ? 1 : 0);
      chain.Deliver(0, GroupPush(group, round, keys, change, samples));
    }
    chain.Settle();
    for (const Message& reply : chain.Answers()) ASSERT_TRUE(StatusOf(reply).ok());
  }
  EXPECT_EQ(chain.replica(1).content()->version(), Version(60));
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
  EXPECT_EQ(chain.replica(1).state(), ReplicaState::kJoined);
}

TEST_F(SparseChain, ReplicasAdmitAndEvictAlike) {
  for (const proto::EvictBy by :
       {proto::EVICT_BY_AGE, proto::EVICT_BY_COUNT, proto::EVICT_BY_NORM}) {
    ChainDriver chain(kAsync, 2, 3, 2);
    proto::SparseRows& rows = *chain.job.spec().mutable_sparse();
    rows.set_rows_max(50);
    rows.set_when_full(proto::SparseRows::EVICT);
    rows.set_evict_by(by);
    rows.set_admit_after(2);
    rows.set_admit_probability(0.8);
    Begin(chain, 2);
    uint64_t sequence = 0;
    const auto push = [&](int count) {
      for (const uint64_t last = sequence + count; sequence < last;) {
        ++sequence;
        const Keys keys = {sequence * sequence % 97, 100 + sequence * sequence % 89,
                           1'000'000'000 + sequence};
        ASSERT_TRUE(StatusOf(chain.Ask(0, Push(sequence, keys, {1, 2, 3, 4, 5, 6}))).ok());
        chain.Pass(absl::Milliseconds(5));
      }
    };
    push(400);
    // Another server joins; keys that wait, and the counts, travel with the rows.
    chain.SetChain({{0, false}, {1, false}, {2, true}});
    chain.PublishToAll();
    push(100);
    chain.Pass(absl::Seconds(2));
    const SparseShard& head = *chain.replica(0).content()->sparse();
    EXPECT_GT(head.totals().evicted, 20);
    EXPECT_GT(head.pending(), 20);
    EXPECT_LE(head.rows(), 50);
    EXPECT_EQ(chain.Digest(0), chain.Digest(1));
    ASSERT_EQ(chain.replica(2).state(), ReplicaState::kCatchingUp);
    EXPECT_EQ(chain.Digest(0), chain.Digest(2));
    EXPECT_EQ(chain.replica(2).content()->sparse()->totals(), head.totals());
    EXPECT_EQ(chain.replica(2).content()->sparse()->pending(), head.pending());
  }
}

void SparseChain::Join(ChainDriver& chain) {
  constexpr uint32_t kWidth = 1000;  // so that rows take several pieces
  Begin(chain, kWidth);
  Keys keys;
  for (uint64_t key = 0; key < 4000; ++key) keys.push_back(key);
  chain.Ask(0, Push(1, keys, Floats(keys.size() * kWidth, 1)));
  chain.SetChain({{0, false}, {1, true}});
  // The second piece is lost at first, and pushes change rows that were sent and that were not.
  int lost = 0;
  chain.lose = [&](const Message& message) {
    return IsRows(message) && message.envelope.replica_piece().piece() == 1 && ++lost < 3;
  };
  chain.PublishToAll();
  for (uint64_t sequence = 2; sequence < 20; ++sequence) {
    const Keys some = {sequence, 100 * sequence, 5000 + sequence};
    ASSERT_TRUE(
        StatusOf(chain.Ask(0, Push(sequence, some, Floats(some.size() * kWidth, 0.5)))).ok());
    chain.Pass(absl::Milliseconds(30));
  }
  chain.Pass(absl::Seconds(2));
  EXPECT_EQ(lost, 3);
}

TEST_F(SparseChain, AServerJoinsWhilePushesGoOn) {
  for (const proto::DataType type : {proto::FLOAT32, proto::BFLOAT16, proto::FLOAT16}) {
    ChainDriver chain(kAsync, 2, 2, 1);
    chain.job.spec().set_data_type(type);
    Join(chain);
    EXPECT_EQ(chain.replica(1).state(), ReplicaState::kCatchingUp);
    EXPECT_EQ(chain.Digest(0), chain.Digest(1));
    // It goes on alone.
    const Floats before = ValuesIn(chain.Ask(0, Pull({3, 1900})));
    chain.SetChain({{1, false}});
    chain.PublishToAll();
    EXPECT_EQ(ValuesIn(chain.Ask(1, Pull({3, 1900}))), before);
  }
}

TEST_F(SparseChain, AServerThatLosesWhatItHeldIsFilledAnew) {
  constexpr uint32_t kWidth = 1000;
  ChainDriver chain(kAsync, 2, 2, 1);
  Begin(chain, kWidth);
  Keys keys;
  for (uint64_t key = 0; key < 4000; ++key) keys.push_back(key);
  chain.Ask(0, Push(1, keys, Floats(keys.size() * kWidth, 1)));
  chain.SetChain({{0, false}, {1, true}});
  // Nothing after the third piece arrives, until the server has begun again.
  bool is_cut_off = true;
  chain.lose = [&](const Message& message) {
    return is_cut_off && IsRows(message) && message.envelope.replica_piece().piece() > 2;
  };
  chain.PublishToAll();
  chain.Pass(absl::Milliseconds(100));
  chain.Restart(1);
  is_cut_off = false;
  chain.PublishToAll();
  chain.Pass(absl::Seconds(2));
  EXPECT_EQ(chain.replica(1).state(), ReplicaState::kCatchingUp);
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
}

}  // namespace
}  // namespace covey::server
