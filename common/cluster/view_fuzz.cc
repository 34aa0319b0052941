// SPDX-License-Identifier: Apache-2.0
// Views, as nodes get them and as logs and snapshots hold them.
#include "common/cluster/view.h"

#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  proto::ClusterView view;
  view.set_job_name("job");
  view.set_epoch(5);
  for (const uint64_t id : {4, 9}) {
    proto::Node& node = *view.add_nodes();
    node.set_id(id);
    node.set_role(id == 4 ? proto::SERVER : proto::WORKER);
    node.set_state(proto::Node::ALIVE);
    node.set_name(id == 4 ? "server-0" : "worker-0");
    node.add_endpoints("");
    node.add_endpoints("tcp://127.0.0.1:1");
  }
  const std::string nodes = view.SerializeAsString();
  proto::Group& group = *view.add_groups();
  group.set_id(2);
  group.set_state(proto::Group::ACTIVE);
  group.add_members(9);
  proto::Table& table = *view.add_tables();
  table.set_id(1);
  table.mutable_spec()->set_name("weights");
  table.mutable_spec()->add_shape(2);
  table.mutable_spec()->add_shape(3);
  for (const uint64_t first : {0, 4}) {
    proto::Shard& shard = *table.add_shards();
    shard.set_index(first == 0 ? 0 : 1);
    shard.set_first_element(first);
    shard.set_element_count(first == 0 ? 4 : 2);
    proto::Replica& replica = *shard.add_chain();
    replica.set_node(4);
    replica.set_loop(1);
  }
  return {nodes, view.SerializeAsString()};
}

bool FuzzOne(std::span<const uint8_t> input) {
  proto::ClusterView told;
  if (!told.ParseFromArray(input.data(), static_cast<int>(input.size()))) return false;
  const auto made = ClusterView::Make(std::move(told));
  if (!made.ok()) return false;
  const ClusterView& view = **made;
  // Each thing is found, and is itself.
  for (const proto::Node& node : view.proto().nodes()) {
    COVEY_CHECK(view.FindNode(NodeId(node.id())) == &node);
    (void)view.GroupOf(NodeId(node.id()));
  }
  for (const proto::Group& group : view.proto().groups()) {
    COVEY_CHECK(view.FindGroup(GroupId(group.id())) == &group);
  }
  for (const proto::Table& table : view.proto().tables()) {
    COVEY_CHECK(view.FindTable(TableId(table.id())) == &table);
    for (const proto::Shard& shard : table.shards()) {
      COVEY_CHECK(view.FindShard({TableId(table.id()), ShardIndex(shard.index())}) == &shard);
      (void)view.EndpointOf(view.HeadOf(shard));
    }
  }
  return true;
}

}  // namespace covey
