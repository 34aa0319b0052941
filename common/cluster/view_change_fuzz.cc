// SPDX-License-Identifier: Apache-2.0
// Changes of a view, as the scheduler sends them to nodes that hold one.
#include "common/cluster/view_change.h"

#include <string>
#include <utility>

#include "common/base/check.h"
#include "common/cluster/view.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {
namespace {

// What the node holds.
proto::ClusterView Held() {
  proto::ClusterView view;
  view.set_job_name("job");
  view.set_epoch(5);
  for (const uint64_t id : {4, 9}) {
    proto::Node& node = *view.add_nodes();
    node.set_id(id);
    node.set_state(proto::Node::ALIVE);
  }
  proto::Group& group = *view.add_groups();
  group.set_id(2);
  group.add_members(9);
  return view;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  proto::ClusterView death = Held();
  death.set_epoch(6);
  death.mutable_nodes(1)->set_state(proto::Node::DEAD);
  proto::ClusterView other = Held();
  other.set_epoch(7);
  other.mutable_groups()->Clear();
  other.mutable_nodes()->erase(other.nodes().begin());
  other.add_nodes()->set_id(12);
  other.add_tables()->set_id(1);
  return {MakeViewChange(Held(), death).SerializeAsString(),
          MakeViewChange(Held(), other).SerializeAsString()};
}

bool FuzzOne(std::span<const uint8_t> input) {
  proto::ViewChange told;
  if (!told.ParseFromArray(input.data(), static_cast<int>(input.size()))) return false;
  const auto after = ApplyViewChange(Held(), told);
  if (!after.ok()) return false;
  // The same view is reached by the change that is made of both.
  const auto again = ApplyViewChange(Held(), MakeViewChange(Held(), *after));
  COVEY_CHECK(again.ok());
  COVEY_CHECK(again->nodes_size() == after->nodes_size());
  COVEY_CHECK(again->groups_size() == after->groups_size());
  COVEY_CHECK(again->tables_size() == after->tables_size());
  (void)ClusterView::Make(*after);
  // And by way of an empty change.
  proto::ViewChange next;
  next.set_since(after->epoch());
  next.mutable_changed()->set_epoch(after->epoch() + 1);
  COVEY_CHECK(MergeViewChanges(told, next).ok() == (after->epoch() + 1 > after->epoch()));
  return true;
}

}  // namespace covey
