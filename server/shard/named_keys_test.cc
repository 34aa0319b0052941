// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/testing/chain_fixture.h"
#include "server/testing/sparse_fixture.h"

// Requests that name the keys of an earlier one.

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Code = absl::StatusCode;
using Floats = std::vector<float>;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr Contract kBsp{.kind = Contract::Kind::kBsp};

TestJob SparseJob(const Contract& contract) {
  TestJob job(contract, 2);
  MakeSparse(job, 2);
  return job;
}

proto::KeyList& ListOf(Message& message) {
  return message.envelope.has_push_request()
             ? *message.envelope.mutable_push_request()->mutable_keys()
             : *message.envelope.mutable_pull_request()->mutable_keys();
}

// The request with its keys, and their name.
Message WithName(Message message, const Keys& keys) {
  message = OfRows(std::move(message), keys);
  EncodedKeys named = Encoded(keys);
  SetName(named);
  ListOf(message) = named.list;
  return message;
}

// The same request, without the keys.
Message ByName(Message message) {
  ListOf(message).set_encoding(proto::KeyList::NAMED);
  message.frames.erase(message.frames.begin());
  message.envelope.clear_frame_checksums();
  SetFrameChecksums(message);
  return message;
}

Floats ValuesIn(const Message& reply) { return ShardDriver::ValuesIn(reply); }

uint32_t KeptIn(const Message& reply) {
  return reply.envelope.has_push_reply() ? reply.envelope.push_reply().key_lists_kept()
                                         : reply.envelope.pull_reply().key_lists_kept();
}

bool IsUnknownIn(const Message& reply) {
  return StatusOf(reply).code() == Code::kUnavailable &&
         (reply.envelope.has_push_reply() ? reply.envelope.push_reply().keys_unknown()
                                          : reply.envelope.pull_reply().keys_unknown());
}

class NamedKeys : public ::testing::Test {
 protected:
  Message Push(uint64_t sequence, const Keys& keys, const Floats& gradient) {
    return WithName(requests_.ClientPush(sequence, gradient), keys);
  }
  Message Pull(const Keys& keys) { return WithName(requests_.Pull(), keys); }

  // Makes requests; its own loop is not part of the test.
  ShardDriver requests_{TestJob(kAsync, 2)};
};

TEST_F(NamedKeys, ARequestMayNameTheKeysOfAnEarlierOne) {
  ShardDriver driver(SparseJob(kAsync));
  const Message first = driver.Ask(Pull({3, 9}));
  EXPECT_THAT(ValuesIn(first), ElementsAre(0, 0, 0, 0));
  EXPECT_EQ(KeptIn(first), 1);
  const Message pushed = driver.Ask(ByName(Push(1, {3, 9}, {1, 2, 3, 4})));
  EXPECT_EQ(pushed.envelope.push_reply().applied_version(), 1);
  EXPECT_EQ(KeptIn(pushed), 1);
  EXPECT_THAT(ValuesIn(driver.Ask(ByName(Pull({3, 9})))), ElementsAre(-1, -2, -3, -4));
  // A second list beside it.
  EXPECT_EQ(KeptIn(driver.Ask(Push(2, {9, 11}, {1, 1, 1, 1}))), 2);
  EXPECT_THAT(ValuesIn(driver.Ask(ByName(Pull({3, 9})))), ElementsAre(-1, -2, -4, -5));
  const Message both =
      driver.Ask(ByName(ShardDriver::WithValues(Push(3, {9, 11}, {1, 1, 1, 1}), 0)));
  EXPECT_THAT(ValuesIn(both), ElementsAre(-5, -6, -2, -2));
  // A query of that push may name the keys of the rows that it wants, too.
  Message query = ByName(ShardDriver::WithValues(Push(3, {9, 11}, {1, 1, 1, 1}), 0));
  query.frames.clear();
  query.envelope.clear_frame_checksums();
  const Message again = driver.Ask(query);
  EXPECT_TRUE(again.envelope.push_reply().duplicate());
  EXPECT_THAT(ValuesIn(again), ElementsAre(-5, -6, -2, -2));
  // Half-precision rows.
  Message half = ByName(Push(4, {9, 11}, {0, 0, 0, 0}));
  half.envelope.mutable_push_request()->set_format(proto::WIRE_FLOAT16);
  half.frames[0] = Buffer::CopyOf(std::vector<uint8_t>{0, 0x3c, 0, 0x3c, 0, 0x40, 0, 0x40});
  half.envelope.clear_frame_checksums();
  SetFrameChecksums(half);
  EXPECT_TRUE(StatusOf(driver.Ask(half)).ok());
  EXPECT_THAT(ValuesIn(driver.Ask(ByName(Pull({9, 11})))), ElementsAre(-6, -7, -4, -4));
}

TEST_F(NamedKeys, KeysWithoutANameAreNotKept) {
  ShardDriver driver(SparseJob(kAsync));
  EXPECT_EQ(KeptIn(driver.Ask(OfRows(requests_.Pull(), {3, 9}))), 0);
  EXPECT_TRUE(IsUnknownIn(driver.Ask(ByName(Pull({3, 9})))));
}

TEST_F(NamedKeys, AnUnknownNameIsRefusedAndChangesNothing) {
  ShardDriver driver(SparseJob(kAsync));
  const Message push = Push(1, {3, 9}, {1, 2, 3, 4});
  const Message refused = driver.Ask(ByName(push));
  EXPECT_TRUE(IsUnknownIn(refused));
  EXPECT_EQ(KeptIn(refused), 0);
  EXPECT_THAT(std::string(StatusOf(refused).message()), HasSubstr("send the keys"));
  const Message pull = driver.Ask(ByName(Pull({3, 9})));
  EXPECT_TRUE(IsUnknownIn(pull));
  EXPECT_THAT(pull.frames, IsEmpty());
  EXPECT_EQ(driver.actor().counters().malformed, 0);
  EXPECT_EQ(driver.actor().counters().pushes, 0);
  // The same push with its keys is no duplicate.
  EXPECT_EQ(driver.Ask(push).envelope.push_reply().applied_version(), 1);
  // A push that was received needs its keys no more.
  EXPECT_TRUE(driver.Ask(ByName(push)).envelope.push_reply().duplicate());
}

TEST_F(NamedKeys, NamesThatLieAreUnknownOrMalformed) {
  ShardDriver driver(SparseJob(kAsync));
  driver.Ask(Push(1, {3, 9}, {1, 2, 3, 4}));
  // Another count than that of the list, with rows for it and without.
  Message pull = ByName(Pull({3, 9}));
  for (const uint32_t count : {1u, 3u, std::numeric_limits<uint32_t>::max()}) {
    ListOf(pull).set_count(count);
    EXPECT_TRUE(IsUnknownIn(driver.Ask(pull))) << count;
  }
  Message push = ByName(Push(2, {3, 9}, {1, 2, 3, 4, 5, 6}));
  ListOf(push).set_count(3);
  EXPECT_TRUE(IsUnknownIn(driver.Ask(push)));
  ListOf(push).set_count(2);
  EXPECT_EQ(StatusOf(driver.Ask(push)).code(), Code::kInvalidArgument);
  ListOf(push).set_count(std::numeric_limits<uint32_t>::max());
  EXPECT_EQ(StatusOf(driver.Ask(push)).code(), Code::kInvalidArgument);
  // No name at all; half of one; a frame too many.
  pull = ByName(Pull({3, 9}));
  ListOf(pull).set_name_low(0);
  EXPECT_TRUE(IsUnknownIn(driver.Ask(pull)));
  ListOf(pull).set_name_high(0);
  EXPECT_TRUE(IsUnknownIn(driver.Ask(pull)));
  push = Push(2, {3, 9}, {1, 2, 3, 4});
  ListOf(push).set_encoding(proto::KeyList::NAMED);
  EXPECT_EQ(StatusOf(driver.Ask(push)).code(), Code::kInvalidArgument);
  Message damaged = ByName(Push(2, {3, 9}, {1, 2, 3, 4}));
  damaged.envelope.set_frame_checksums(0, 1);
  EXPECT_EQ(StatusOf(driver.Ask(damaged)).code(), Code::kUnavailable);
  Message nan = ByName(Push(2, {3, 9}, {1, 2, 3, std::numeric_limits<float>::quiet_NaN()}));
  EXPECT_THAT(std::string(StatusOf(driver.Ask(nan)).message()), HasSubstr("column 1 of key 9"));
  EXPECT_THAT(ValuesIn(driver.Ask(ByName(Pull({3, 9})))), ElementsAre(-1, -2, -3, -4));
}

TEST_F(NamedKeys, ANameIsForOneProcessAndForOneGenerationOfTheShard) {
  TestJob job = SparseJob(kAsync);
  ShardDriver driver(job);
  driver.Ask(Pull({3, 9}));
  Message other = ByName(Pull({3, 9}));
  SetSender(11, other);
  EXPECT_TRUE(IsUnknownIn(driver.Ask(other)));
  EXPECT_FALSE(IsUnknownIn(driver.Ask(ByName(Pull({3, 9})))));
  job.view.set_epoch(job.view.epoch() + 1);
  job.view.mutable_tables(0)->mutable_shards(0)->set_generation(job.view.epoch());
  driver.AdoptView(job);
  Message later = ByName(Pull({3, 9}));
  later.envelope.mutable_pull_request()->set_shard_generation(job.view.epoch());
  EXPECT_TRUE(IsUnknownIn(driver.Ask(later)));
  // The client has left, and its lists with it.
  later = Pull({3, 9});
  later.envelope.mutable_pull_request()->set_shard_generation(job.view.epoch());
  EXPECT_EQ(KeptIn(driver.Ask(later)), 1);
  job.view.set_epoch(job.view.epoch() + 1);
  for (proto::Node& node : *job.view.mutable_nodes()) {
    if (NodeId(node.id()) == kTestClient) node.set_state(proto::Node::LEFT);
  }
  driver.AdoptView(job);
  EXPECT_TRUE(IsUnknownIn(driver.Ask(ByName(later))));
}

TEST_F(NamedKeys, ListsThatDifferAfterTheirFirstKeysAreTwo) {
  ShardDriver driver(SparseJob(kAsync));
  Keys keys(5'000);
  std::iota(keys.begin(), keys.end(), 0);
  Keys other = keys;
  other.back() += 1;
  EXPECT_EQ(KeptIn(driver.Ask(Push(1, keys, Floats(keys.size() * 2, 1)))), 1);
  EXPECT_EQ(KeptIn(driver.Ask(Push(2, other, Floats(keys.size() * 2, 1)))), 2);
  Floats rows = ValuesIn(driver.Ask(ByName(Pull(keys))));
  EXPECT_EQ(rows[0], -2);
  EXPECT_EQ(rows.back(), -1);
  driver.Ask(ByName(Push(3, other, Floats(keys.size() * 2, 1))));
  EXPECT_EQ(ValuesIn(driver.Ask(OfRows(requests_.Pull(), {4'999, 5'000}))),
            Floats({-1, -1, -2, -2}));
}

TEST_F(NamedKeys, ListsCountInTheBudgetAndGiveWay) {
  ShardActor::Options options;
  options.queued_bytes_max = 1 << 20;
  ShardDriver driver(SparseJob(kAsync), options);
  uint32_t kept_most = 0;
  for (uint64_t first = 0; first < 100; ++first) {
    Keys keys(1'000);
    std::iota(keys.begin(), keys.end(), first);
    const Message reply = driver.Ask(Pull(keys));
    ASSERT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
    ASSERT_GE(KeptIn(reply), 1);
    kept_most = std::max(kept_most, KeptIn(reply));
    EXPECT_FALSE(IsUnknownIn(driver.Ask(ByName(Pull(keys)))));
  }
  // A quarter of the budget, at 21 bytes per key.
  EXPECT_GE(kept_most, 10);
  EXPECT_LE(kept_most, 13);
}

TEST_F(NamedKeys, AParkedPullHasItsKeys) {
  ShardActor::Options options;
  options.queued_bytes_max = 1 << 20;
  ShardDriver driver(SparseJob(kBsp), options);
  driver.Ask(Pull({3, 9}));
  Message parked = ByName(Pull({3, 9}));
  parked.envelope.mutable_pull_request()->mutable_read()->set_step(1);
  EXPECT_THAT(driver.Deliver(parked), IsEmpty());
  // Its list goes meanwhile.
  for (uint64_t first = 0; first < 20; ++first) {
    Keys keys(1'000);
    std::iota(keys.begin(), keys.end(), first);
    driver.Ask(Pull(keys));
  }
  EXPECT_TRUE(IsUnknownIn(driver.Ask(ByName(Pull({3, 9})))));
  driver.Deliver(OfRows(requests_.GroupPush(1, 1, {1, 2}), {3}));
  const std::vector<Message> sent = driver.Deliver(OfRows(requests_.GroupPush(2, 1, {1, 2}), {9}));
  const auto answer = std::find_if(sent.begin(), sent.end(), [](const Message& message) {
    return message.envelope.has_pull_reply();
  });
  ASSERT_NE(answer, sent.end());
  EXPECT_THAT(ValuesIn(*answer), ElementsAre(-0.5, -1, -0.5, -1));
}

TEST_F(NamedKeys, RecordsCarryKeysAndANewHeadKnowsNoNames) {
  ChainDriver chain(kAsync, 2, 2, 2);
  MakeSparse(chain.job, 2);
  int records = 0;
  chain.lose = [&](const Message& message) {
    if (!message.envelope.has_replicate_request() ||
        message.envelope.replicate_request().version() == 0) {
      return false;
    }
    ++records;
    const proto::KeyList& keys = message.envelope.replicate_request().keys();
    EXPECT_FALSE(IsNamed(keys));
    EXPECT_TRUE(covey::NameOf(keys).is_none());
    EXPECT_THAT(message.frames, SizeIs(2));
    return false;
  };
  chain.PublishToAll();
  chain.Ask(0, Pull({3, 9}));
  ASSERT_TRUE(StatusOf(chain.Ask(0, ByName(Push(1, {3, 9}, {1, 2, 3, 4})))).ok());
  ASSERT_TRUE(StatusOf(chain.Ask(0, ByName(Push(2, {3, 9}, {1, 2, 3, 4})))).ok());
  EXPECT_EQ(records, 2);
  EXPECT_EQ(chain.Digest(0), chain.Digest(1));
  chain.SetChain({{1, false}});
  chain.PublishToAll();
  Message push = ByName(Push(3, {3, 9}, {1, 2, 3, 4}));
  push.envelope.mutable_header()->set_epoch(chain.job.view.epoch());
  EXPECT_TRUE(IsUnknownIn(chain.Ask(1, push)));
  EXPECT_TRUE(IsUnknownIn(chain.Ask(1, ByName(Pull({3, 9})))));
  EXPECT_THAT(ValuesIn(chain.Ask(1, Pull({3, 9}))), ElementsAre(-2, -4, -6, -8));
  EXPECT_TRUE(StatusOf(chain.Ask(1, push)).ok());
  EXPECT_THAT(ValuesIn(chain.Ask(1, ByName(Pull({3, 9})))), ElementsAre(-3, -6, -9, -12));
}

}  // namespace
}  // namespace covey::server
