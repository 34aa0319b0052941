// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/replicas_in_view.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "common/cluster/ids.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Servers "a" and "b", and tables 1 (head a) and 2 (head b) with both as replicas.
proto::ClusterView TwoServers() {
  proto::ClusterView view;
  for (const char* name : {"a", "b"}) {
    proto::Node& node = *view.add_nodes();
    node.set_id(view.nodes_size());
    node.set_name(name);
    node.set_state(proto::Node::ALIVE);
  }
  for (const uint32_t head : {1, 2}) {
    proto::Table& table = *view.add_tables();
    table.set_id(head);
    proto::Shard& shard = *table.add_shards();
    shard.add_chain()->set_node(head);
    shard.add_chain()->set_node(3 - head);
  }
  return view;
}

std::unique_ptr<LedgerLoad::Lane> LaneOf(uint32_t table) {
  auto lane = std::make_unique<LedgerLoad::Lane>();
  lane->table.id = TableId(table);
  return lane;
}

TEST(ReplicasInViewTest, TheHeadIsNamedFirst) {
  EXPECT_THAT(HoldersOf(TwoServers(), *LaneOf(2)), ElementsAre("b", "a"));
  EXPECT_THAT(HoldersOf(TwoServers(), *LaneOf(3)), IsEmpty());
}

TEST(ReplicasInViewTest, FindsTheLanesOfAHead) {
  std::vector<std::unique_ptr<LedgerLoad::Lane>> lanes;
  lanes.push_back(LaneOf(1));
  lanes.push_back(LaneOf(2));
  EXPECT_THAT(LanesHeadedBy("b", TwoServers(), lanes), ElementsAre(lanes[1].get()));
  EXPECT_THAT(LanesHeadedBy("c", TwoServers(), lanes), IsEmpty());
}

TEST(ReplicasInViewTest, AJoiningReplicaDoesNotCount) {
  proto::ClusterView view = TwoServers();
  EXPECT_TRUE(HasReplicas(view));
  view.mutable_tables(1)->mutable_shards(0)->mutable_chain(1)->set_joining(true);
  EXPECT_FALSE(HasReplicas(view));
  view.mutable_tables(1)->mutable_shards(0)->mutable_chain()->RemoveLast();
  EXPECT_FALSE(HasReplicas(view));
}

TEST(ReplicasInViewTest, ANodeIsAliveByItsNameAndState) {
  proto::ClusterView view = TwoServers();
  view.mutable_nodes(1)->set_state(proto::Node::DEAD);
  EXPECT_TRUE(IsAlive(view, "a"));
  EXPECT_FALSE(IsAlive(view, "b"));
  EXPECT_FALSE(IsAlive(view, "c"));
}

}  // namespace
}  // namespace covey::cli
