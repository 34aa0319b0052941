// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/snapshot_writer.h"

#include <memory>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

constexpr Address kSelf{NodeId(2), 1};
constexpr ShardId kShard{TableId(1), ShardIndex(0)};

// A loop that alone holds one shard of one element, and its writer.
class SnapshotWriterTest : public ::testing::Test {
 protected:
  SnapshotWriterTest() {
    view_.set_epoch(5);
    proto::Node& node = *view_.add_nodes();
    node.set_id(kSelf.node.value());
    node.set_role(proto::SERVER);
    node.set_state(proto::Node::ALIVE);
    node.add_endpoints("");
    node.add_endpoints("tcp://127.0.0.1:1");
    proto::Table& table = *view_.add_tables();
    table.set_id(1);
    table.mutable_spec()->add_shape(1);
    proto::Shard& shard = *table.add_shards();
    shard.set_element_count(1);
    shard.set_generation(1);
    shard.set_chain_epoch(1);
    proto::Replica& replica = *shard.add_chain();
    replica.set_node(kSelf.node.value());
    replica.set_loop(kSelf.loop);
  }

  void Order(uint64_t id, uint64_t epoch) {
    view_.mutable_snapshot()->set_id(id);
    view_.mutable_snapshot()->set_epoch(epoch);
    view_.mutable_snapshot()->set_folder("snapshot-000001-e6");
  }
  void FollowView(uint64_t epoch) {
    view_.set_epoch(epoch);
    const auto view = ClusterView::Make(view_);
    ASSERT_TRUE(view.ok()) << view.status();
    writer_.FollowView(**view, kSelf, outbox_);
  }
  void Cut(uint64_t snapshot, uint64_t epoch) {
    ContentCut content;
    content.index = 7;
    content.values = Buffer::CopyOf(std::vector<uint8_t>(4));
    content.clocks.Advance(GroupId(3), Step(40));
    writer_.Add(kShard, 1,
                {.snapshot = snapshot, .epoch = Epoch(epoch), .content = std::move(content)},
                outbox_);
  }
  size_t Requests() {
    size_t requests = 0;
    for (const Message& message : outbox_.TakeMessages()) {
      requests += message.envelope.has_store_request() ? 1 : 0;
    }
    return requests;
  }

  proto::ClusterView view_;
  SnapshotWriter writer_;
  Outbox outbox_;
};

// The head's record can be faster than the view that has the order.
TEST_F(SnapshotWriterTest, StoresACutThatComesBeforeItsOrder) {
  FollowView(5);
  Cut(1, 6);
  EXPECT_EQ(Requests(), 0u);
  Order(1, 6);
  FollowView(6);
  EXPECT_GT(Requests(), 0u);
}

TEST_F(SnapshotWriterTest, DropsACutWhoseOrderWasWithdrawnMeanwhile) {
  FollowView(5);
  Cut(1, 6);
  FollowView(7);
  Order(2, 8);
  FollowView(8);
  EXPECT_EQ(Requests(), 0u);
  Cut(1, 6);
  EXPECT_EQ(Requests(), 0u) << "a late cut of an earlier order";
  Cut(2, 8);
  EXPECT_GT(Requests(), 0u);
}

}  // namespace
}  // namespace covey::server
