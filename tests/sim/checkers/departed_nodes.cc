// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/departed_nodes.h"

#include "tests/sim/checkers/published_view.h"

namespace covey::sim {

void DepartedNodes::OnSend(absl::Time, const Message& message) {
  const proto::ClusterView* view = PublishedView(message);
  if (view == nullptr) {
    // A heartbeat is answered at once; a dead sender must get ABORTED.
    if (!message.envelope.has_heartbeat_reply() || !StatusOf(message).ok()) return;
    const auto found = nodes_.find(message.to().node.value());
    if (found != nodes_.end() && found->second.departed) {
      violations_.Add("departed_nodes", absl::StrCat("the scheduler accepted a heartbeat of node ",
                                                     found->first, ", which had departed"));
    }
    return;
  }
  if (view->epoch() == epoch_) return;
  epoch_ = view->epoch();
  for (const proto::Node& node : view->nodes()) {
    NodeHistory& history = nodes_[node.id()];
    const bool alive = node.state() == proto::Node::ALIVE;
    if (history.incarnation != 0 && history.incarnation != node.incarnation()) {
      violations_.Add("departed_nodes",
                      absl::StrCat("node ", node.id(), " changed its incarnation"));
    }
    if (history.departed && alive) {
      violations_.Add("departed_nodes", absl::StrCat("node ", node.id(), " returned at epoch ",
                                                     epoch_, " after it had departed"));
    }
    history.incarnation = node.incarnation();
    history.departed = history.departed || !alive;
  }
  for (const proto::Group& group : view->groups()) {
    bool& ended = group_ended_[group.id()];
    const bool active = group.state() == proto::Group::ACTIVE;
    if (ended && active) {
      violations_.Add("departed_nodes",
                      absl::StrCat("group ", group.id(), " became active again at epoch ", epoch_));
    }
    ended = ended || !active;
  }
}

}  // namespace covey::sim
