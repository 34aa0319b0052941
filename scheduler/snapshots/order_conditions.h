// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "proto/view.pb.h"

namespace covey::scheduler {

// What must stay the same in the view from the order of a snapshot to its last report: groups and
// their members, contracts, and the chains of all shards. A value.
class OrderConditions {
 public:
  OrderConditions() = default;
  // Of the view that holds the order.
  explicit OrderConditions(const proto::ClusterView& view);

  // What has changed since, for users; empty = nothing has.
  std::string WhyBroken(const proto::ClusterView& view) const;
  // Of all tables that it has.
  size_t shards() const { return shards_; }

 private:
  uint64_t epoch_ = 0;
  std::map<uint32_t, uint64_t> generations_;  // of the groups
  size_t shards_ = 0;
};

// Whether a replica of a table that snapshots have is being filled: the chain will change when it
// is full. Pure.
bool HasJoiningReplica(const proto::ClusterView& view);

}  // namespace covey::scheduler
