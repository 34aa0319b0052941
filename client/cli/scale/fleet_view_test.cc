// SPDX-License-Identifier: Apache-2.0
#include "client/cli/scale/fleet_view.h"

#include <gtest/gtest.h>

namespace covey::cli {
namespace {

proto::Node& AddNode(proto::ClusterView& view, uint64_t id, const std::string& name) {
  proto::Node& node = *view.add_nodes();
  node.set_id(id);
  node.set_name(name);
  node.set_role(name[0] == 's' ? proto::SERVER : proto::WORKER);
  node.set_state(proto::Node::ALIVE);
  return node;
}

proto::ClusterView TwoServers() {
  proto::ClusterView view;
  AddNode(view, 2, "server-0");
  AddNode(view, 3, "server-1");
  proto::Table& table = *view.add_tables();
  for (int i = 0; i < 3; ++i) {
    proto::Shard& shard = *table.add_shards();
    shard.add_chain()->set_node(2);
    if (i > 0) shard.add_chain()->set_node(3);
  }
  return view;
}

TEST(FleetViewTest, CountsShardsOfHeadsAndReplicas) {
  EXPECT_EQ(ShardsOn(TwoServers(), 2), 3u);
  EXPECT_EQ(ShardsOn(TwoServers(), 3), 2u);
  EXPECT_EQ(ShardsOn(TwoServers(), 4), 0u);
}

TEST(FleetViewTest, ANameIsThatOfItsNewestHolder) {
  proto::ClusterView view = TwoServers();
  view.mutable_nodes(1)->set_state(proto::Node::DEAD);
  AddNode(view, 9, "server-1");
  EXPECT_EQ(FindNewest(view, "server-1")->id(), 9u);
  EXPECT_EQ(FindNewest(view, "server-7"), nullptr);
}

TEST(FleetViewTest, SaysHowFarADrainIs) {
  const proto::ClusterView view = TwoServers();
  EXPECT_EQ(DrainLine(view, view.nodes(1), 5), "server-1 drains: 2 of 5 shards left");
}

TEST(FleetViewTest, SaysWhatScalingStillNeeds) {
  proto::ClusterView view = TwoServers();
  EXPECT_EQ(ScaleRest(view), "") << "nobody has asked for a number";
  view.set_wanted_servers(3);
  view.set_wanted_workers(2);
  EXPECT_EQ(ScaleRest(view), "1 server to come; 2 workers to come");
  view.set_wanted_servers(1);
  view.set_wanted_workers(0);
  view.mutable_nodes(1)->set_draining(true);
  EXPECT_EQ(ScaleRest(view), "server-1 drains, 2 shards left");
  view.mutable_nodes(1)->set_state(proto::Node::LEFT);
  EXPECT_EQ(ScaleRest(view), "");
}

}  // namespace
}  // namespace covey::cli
