// SPDX-License-Identifier: Apache-2.0
#include "scheduler/nodes/departed_nodes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class DepartedNodesTest : public ::testing::Test {
 protected:
  // Returns its id.
  uint64_t Add(proto::Role role, uint32_t rank, proto::Node::State state) {
    proto::Node& node = *view_.add_nodes();
    node.set_id(static_cast<uint64_t>(view_.nodes_size()));
    node.set_role(role);
    node.set_rank(rank);
    node.set_state(state);
    return node.id();
  }
  void Depart(proto::Role role, uint32_t rank, size_t nodes) {
    for (size_t i = 0; i < nodes; ++i) {
      Add(role, rank, i % 2 == 0 ? proto::Node::DEAD : proto::Node::LEFT);
    }
  }

  proto::ClusterView view_;
};

TEST_F(DepartedNodesTest, TheNewestAreKept) {
  Depart(proto::SERVER, 0, kDepartedNodesKept);
  Add(proto::SERVER, 0, proto::Node::ALIVE);
  Depart(proto::CLIENT, 0, kDepartedNodesKept);
  EXPECT_THAT(ForgettableNodes(view_), IsEmpty());
  Depart(proto::WORKER, 0, 1);
  Depart(proto::CLIENT, 0, 2);
  EXPECT_THAT(ForgettableNodes(view_), ElementsAre(NodeId(1), NodeId(kDepartedNodesKept + 2),
                                                   NodeId(kDepartedNodesKept + 3)));
}

TEST_F(DepartedNodesTest, LiveNodesAndTheNewestOfARankAreKept) {
  Add(proto::SERVER, 0, proto::Node::ALIVE);
  Add(proto::SERVER, 1, proto::Node::LEFT);
  Add(proto::WORKER, 1, proto::Node::DEAD);
  Depart(proto::SERVER, 2, 2 * kDepartedNodesKept);
  const std::vector<NodeId> forgettable = ForgettableNodes(view_);
  EXPECT_EQ(forgettable.size(), kDepartedNodesKept);
  EXPECT_EQ(forgettable.front(), NodeId(4));
}

TEST_F(DepartedNodesTest, NodesInUseAreKept) {
  Depart(proto::SERVER, 0, 2 * kDepartedNodesKept);
  Depart(proto::WORKER, 0, kDepartedNodesKept);
  ASSERT_THAT(ForgettableNodes(view_), Contains(NodeId(3)));
  view_.add_groups()->add_members(1);
  proto::Table& table = *view_.add_tables();
  table.mutable_initialization()->set_node(2);
  table.add_shards()->add_chain()->set_node(3);
  const std::vector<NodeId> forgettable = ForgettableNodes(view_);
  for (const uint64_t node : {1, 2, 3}) EXPECT_THAT(forgettable, Not(Contains(NodeId(node))));
  EXPECT_THAT(forgettable, Contains(NodeId(4)));
}

}  // namespace
}  // namespace covey::scheduler
