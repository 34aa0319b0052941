// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/view.h"

#include <gtest/gtest.h>

#include <utility>

namespace covey {
namespace {

proto::ClusterView Valid() {
  proto::ClusterView view;
  view.set_epoch(5);
  for (uint64_t id : {4, 9}) {
    proto::Node& node = *view.add_nodes();
    node.set_id(id);
    node.set_name(id == 4 ? "server-0" : "worker-0");
    node.add_endpoints("");
    node.add_endpoints("tcp://127.0.0.1:1");
  }
  proto::Group& group = *view.add_groups();
  group.set_id(2);
  group.set_state(proto::Group::ACTIVE);
  group.add_members(9);
  proto::Table& table = *view.add_tables();
  table.set_id(1);
  table.mutable_spec()->set_name("weights");
  table.mutable_spec()->add_shape(2);
  table.mutable_spec()->add_shape(3);
  for (uint64_t first : {0, 4}) {
    proto::Shard& shard = *table.add_shards();
    shard.set_index(first == 0 ? 0 : 1);
    shard.set_first_element(first);
    shard.set_element_count(first == 0 ? 4 : 2);
    proto::Replica& replica = *shard.add_chain();
    replica.set_node(4);
    replica.set_loop(1);
  }
  return view;
}

TEST(ClusterViewTest, AWorkerBelongsToTheGroupThatGoesOn) {
  proto::ClusterView view = Valid();
  proto::Group ended = view.groups(0);
  ended.set_id(1);
  ended.set_state(proto::Group::DONE);
  view.mutable_groups()->Add(std::move(ended));
  view.mutable_groups()->SwapElements(0, 1);
  EXPECT_EQ((*ClusterView::Make(view))->GroupOf(NodeId(9))->id(), 2u);
  view.mutable_groups(1)->set_state(proto::Group::BROKEN);
  EXPECT_EQ((*ClusterView::Make(view))->GroupOf(NodeId(9))->id(), 2u);
}

TEST(ClusterViewTest, FindsWhatIsThereAndNothingElse) {
  const auto view = *ClusterView::Make(Valid());
  EXPECT_EQ(view->FindNode(NodeId(4))->name(), "server-0");
  EXPECT_EQ(view->FindNode(NodeId(5)), nullptr);
  EXPECT_EQ(view->GroupOf(NodeId(9))->id(), 2u);
  EXPECT_EQ(view->GroupOf(NodeId(4)), nullptr);
  EXPECT_EQ(view->FindTable("weights")->id(), 1u);
  EXPECT_EQ(view->FindTable("bias"), nullptr);
  const proto::Shard* shard = view->FindShard({TableId(1), ShardIndex(1)});
  ASSERT_NE(shard, nullptr);
  EXPECT_EQ(view->FindShard({TableId(1), ShardIndex(2)}), nullptr);
  EXPECT_EQ(view->EndpointOf(view->HeadOf(*shard)), "tcp://127.0.0.1:1");
  EXPECT_EQ(ClusterView::PositionInChain(*shard, {NodeId(4), 1}), 0);
  EXPECT_EQ(ClusterView::PositionInChain(*shard, {NodeId(4), 2}), std::nullopt);
  EXPECT_EQ(view->EndpointOf({NodeId(4), 7}), "");
  EXPECT_EQ(view->NameOf(NodeId(77)), "node 77");
  EXPECT_EQ(view->live_groups(), std::vector<LiveGroup>{{.id = GroupId(2)}});
}

TEST(ClusterViewTest, TellsWhoLives) {
  proto::ClusterView view = Valid();
  view.mutable_nodes(0)->set_state(proto::Node::ALIVE);
  view.mutable_nodes(1)->set_state(proto::Node::LEFT);
  const auto made = *ClusterView::Make(view);
  EXPECT_TRUE(made->IsAlive(NodeId(4)));
  EXPECT_FALSE(made->IsAlive(NodeId(9)));
  EXPECT_FALSE(made->IsAlive(NodeId(5)));
}

TEST(ClusterViewTest, TellsWithHowManyGroupsTheJobBegan) {
  EXPECT_EQ(ClusterView::Empty()->initial_groups(), 0u);
  proto::ClusterView view = Valid();
  view.mutable_groups(0)->set_first_step(11);
  view.mutable_groups(0)->set_state(proto::Group::BROKEN);
  for (const auto& [id, first_step] : {std::pair(3u, 11u), std::pair(7u, 12u)}) {
    proto::Group& group = *view.add_groups();
    group.set_id(id);
    group.set_first_step(first_step);
    group.add_members(9);
  }
  EXPECT_EQ((*ClusterView::Make(view))->initial_groups(), 2u);
}

TEST(ClusterViewTest, RefusesWhatLookUpsCouldNotRelyOn) {
  const std::vector<void (*)(proto::ClusterView&)> breaks = {
      [](proto::ClusterView& view) { view.mutable_nodes(1)->set_id(4); },
      [](proto::ClusterView& view) { view.mutable_groups(0)->set_members(0, 5); },
      [](proto::ClusterView& view) { view.mutable_groups(0)->clear_members(); },
      [](proto::ClusterView& view) {
        view.mutable_tables(0)->mutable_shards(1)->set_first_element(3);
      },
      [](proto::ClusterView& view) {
        view.mutable_tables(0)->mutable_shards(1)->set_element_count(3);
      },
      [](proto::ClusterView& view) {
        view.mutable_tables(0)->mutable_shards(1)->set_element_count(~0ull);
      },
      [](proto::ClusterView& view) { view.mutable_tables(0)->mutable_shards()->RemoveLast(); },
      [](proto::ClusterView& view) { view.mutable_tables(0)->mutable_spec()->set_shape(0, 0); },
      [](proto::ClusterView& view) { view.mutable_tables(0)->mutable_spec()->set_shape(0, ~0ull); },
      [](proto::ClusterView& view) {
        *view.mutable_tables(0)->mutable_shards(0)->add_chain() = view.tables(0).shards(0).chain(0);
      },
      [](proto::ClusterView& view) {
        view.mutable_tables(0)->mutable_shards(0)->mutable_chain(0)->set_joining(true);
      },
  };
  for (size_t i = 0; i < breaks.size(); ++i) {
    proto::ClusterView view = Valid();
    breaks[i](view);
    EXPECT_EQ(ClusterView::Make(std::move(view)).status().code(),
              absl::StatusCode::kInvalidArgument)
        << i;
  }
}

TEST(JobFingerprintTest, TellsNamesApart) {
  EXPECT_NE(JobFingerprint("a"), JobFingerprint("b"));
  EXPECT_NE(JobFingerprint(""), 0u);
}

}  // namespace
}  // namespace covey
