// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/security/seal/data_keys.h"

namespace covey {

// The processes of a secured job, without a scheduler: each has keys, and knows those of the others
// from the views that Publish gives to all of them; test-only.
class SecuredNodes {
 public:
  // The keys of a process that is this node from now on. The others do not know it yet.
  std::shared_ptr<DataKeys> Register(NodeId id, Incarnation incarnation = Incarnation()) {
    auto keys = DataKeys::Make(/*job=*/42);
    EXPECT_TRUE(keys.ok()) << keys.status();
    proto::Node& node = nodes_[id];
    node.set_id(id.value());
    node.set_incarnation(incarnation.value());
    node.set_role(proto::WORKER);
    node.set_rank(static_cast<uint32_t>(id.value()));
    node.set_state(proto::Node::ALIVE);
    node.set_data_key((*keys)->public_key());
    processes_.push_back({.self = id, .keys = *keys});
    return *keys;
  }
  // The same, and all processes know it.
  std::shared_ptr<DataKeys> Join(NodeId id, Incarnation incarnation = Incarnation()) {
    auto keys = Register(id, incarnation);
    Publish();
    return keys;
  }

  // What the next view says.
  proto::Node& node(NodeId id) { return nodes_[id]; }
  proto::Node Remove(NodeId id) {
    proto::Node node = nodes_[id];
    nodes_.erase(id);
    return node;
  }

  void Publish() {
    proto::ClusterView view;
    view.set_epoch(++epoch_);
    for (const auto& [id, node] : nodes_) *view.add_nodes() = node;
    const auto checked = ClusterView::Make(std::move(view));
    ASSERT_TRUE(checked.ok()) << checked.status();
    for (const Process& process : processes_) process.keys->Follow(process.self, **checked);
  }

 private:
  struct Process {
    NodeId self;
    std::shared_ptr<DataKeys> keys;
  };

  uint64_t epoch_ = 0;
  absl::btree_map<NodeId, proto::Node> nodes_;
  std::vector<Process> processes_;
};

}  // namespace covey
