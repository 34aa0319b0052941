// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/cluster/ids.h"
#include "common/cluster/live_group.h"
#include "proto/view.pb.h"

namespace covey {

// An immutable snapshot of membership, groups and placement, with the look-ups that roles need.
// Thread-safe because it is immutable. Its bytes come from the scheduler and are checked by Make.
class ClusterView {
 public:
  // Checks order, uniqueness, coverage and limits, so that look-ups can rely on them.
  // INVALID_ARGUMENT: names what is wrong.
  static absl::StatusOr<std::shared_ptr<const ClusterView>> Make(proto::ClusterView view);
  // No nodes, epoch 0.
  static std::shared_ptr<const ClusterView> Empty();

  const proto::ClusterView& proto() const { return proto_; }
  Epoch epoch() const { return Epoch(proto_.epoch()); }
  uint64_t job() const { return proto_.job(); }

  // All of these return null when there is no such thing; O(log n).
  const proto::Node* FindNode(NodeId id) const;
  const proto::Group* FindGroup(GroupId id) const;
  const proto::Table* FindTable(TableId id) const;
  const proto::Table* FindTable(absl::string_view name) const;
  // The ACTIVE, BROKEN or DONE group that a worker belongs to.
  const proto::Group* GroupOf(NodeId worker) const;
  const proto::Shard* FindShard(ShardId id) const;

  // The head's loop; its node id is 0 when the chain is empty.
  Address HeadOf(const proto::Shard& shard) const;
  // Whether the node is in the view, and neither dead nor departed.
  bool IsAlive(NodeId id) const;
  // Position of the loop in the shard's chain, 0 = head; nothing when it is not in the chain.
  static std::optional<int> PositionInChain(const proto::Shard& shard, const Address& loop);
  // Empty when the node is unknown or has no such loop.
  std::string EndpointOf(const Address& address) const;
  // "worker-3", or "node 17" when it is not in the view.
  std::string NameOf(NodeId id) const;
  // Groups in state ACTIVE, in growing order: those that contracts wait for.
  const std::vector<LiveGroup>& live_groups() const { return live_groups_; }
  // The number of groups that the job began with, ended ones included, without those that late
  // workers made.
  uint32_t initial_groups() const { return initial_groups_; }

 private:
  explicit ClusterView(proto::ClusterView view);

  proto::ClusterView proto_;
  std::vector<LiveGroup> live_groups_;
  uint32_t initial_groups_ = 0;
};

// Fingerprint of a job's name, never 0. Pure (FNV-1a, 64 bits, mixed).
uint64_t JobFingerprint(absl::string_view name);

}  // namespace covey
