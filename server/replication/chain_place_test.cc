// SPDX-License-Identifier: Apache-2.0
#include "server/replication/chain_place.h"

#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace covey::server {
namespace {

constexpr ShardId kShard{TableId(1), ShardIndex(2)};
constexpr uint64_t kGeneration = 7;

Address ServerAt(uint32_t node) { return {NodeId(node), 1}; }

proto::Shard ChainOf(uint64_t epoch, const std::vector<uint32_t>& nodes) {
  proto::Shard shard;
  shard.set_generation(kGeneration);
  shard.set_chain_epoch(epoch);
  for (const uint32_t node : nodes) {
    proto::Replica& replica = *shard.add_chain();
    replica.set_node(node);
    replica.set_loop(1);
  }
  return shard;
}

TEST(ChainPlace, NamesItsNeighborAndItsPosition) {
  ChainPlace place(kShard, kGeneration);
  const proto::Shard shard = ChainOf(3, {10, 11, 12});
  EXPECT_FALSE(place.Follows(shard));
  place.Follow(shard, ServerAt(11));
  EXPECT_TRUE(place.Follows(shard));
  EXPECT_FALSE(place.Follows(ChainOf(4, {10, 11, 12})));
  EXPECT_FALSE(place.is_head());
  EXPECT_EQ(place.position(), 1);
  EXPECT_EQ(place.predecessor(), ServerAt(10));
  EXPECT_EQ(place.chain().table(), 1u);
  EXPECT_EQ(place.chain().shard(), 2u);
  EXPECT_EQ(place.chain().generation(), kGeneration);
  EXPECT_EQ(place.chain_epoch(), 3u);
}

TEST(ChainPlace, IsTheHeadSinceTheChainThatMadeItSo) {
  ChainPlace place(kShard, kGeneration);
  place.Follow(ChainOf(3, {10, 11}), ServerAt(11));
  place.Follow(ChainOf(4, {11}), ServerAt(11));
  EXPECT_TRUE(place.is_head());
  EXPECT_EQ(place.head_since(), Epoch(4));
  place.Follow(ChainOf(5, {11, 12}), ServerAt(11));
  EXPECT_EQ(place.head_since(), Epoch(4));
  place.Follow(ChainOf(6, {12, 11}), ServerAt(11));
  place.Follow(ChainOf(7, {11, 12}), ServerAt(11));
  EXPECT_EQ(place.head_since(), Epoch(7));
}

TEST(ChainPlace, IsOvertakenByAServerThatWasNotInFront) {
  ChainPlace place(kShard, kGeneration);
  EXPECT_TRUE(place.Follow(ChainOf(1, {10, 11, 12}), ServerAt(12)));
  EXPECT_FALSE(place.Follow(ChainOf(2, {11, 10, 12}), ServerAt(12))) << "the same two";
  EXPECT_FALSE(place.Follow(ChainOf(3, {11, 12, 13}), ServerAt(12))) << "one of the two";
  EXPECT_TRUE(place.Follow(ChainOf(4, {13, 12}), ServerAt(12)));
}

// A message that names the epoch `epoch`, against a place that follows epoch 5.
std::pair<bool, std::vector<Message>> PassFence(uint64_t epoch) {
  ChainPlace place(kShard, kGeneration);
  place.Follow(ChainOf(5, {10, 11}), ServerAt(11));
  Message message;
  message.envelope.mutable_header()->set_node(10);
  proto::ChainPosition& chain = *message.envelope.mutable_replicate_request()->mutable_chain();
  chain.set_chain_epoch(epoch);
  Outbox outbox;
  const bool admitted = place.Admits(message, chain, outbox);
  return {admitted, outbox.TakeMessages()};
}

TEST(ChainPlace, AdmitsMessagesOfItsOwnChainOnly) {
  EXPECT_TRUE(PassFence(5).first);
  const auto [newer, silence] = PassFence(6);
  EXPECT_FALSE(newer);
  EXPECT_TRUE(silence.empty());
  const auto [older, refusals] = PassFence(4);
  EXPECT_FALSE(older);
  ASSERT_EQ(refusals.size(), 1u);
  EXPECT_TRUE(absl::IsAborted(StatusOf(refusals[0])));
  EXPECT_EQ(refusals[0].envelope.replicate_reply().chain().chain_epoch(), 5u);
  EXPECT_EQ(refusals[0].to().node, NodeId(10));
}

}  // namespace
}  // namespace covey::server
