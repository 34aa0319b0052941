// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/view.pb.h"

namespace covey::scheduler {

// In which pass over one data set each node is, as its requests name it (WorkRequest.pass). Members
// of a group go to the next pass together, and a new member begins in the pass of its group.
//
//   unknown ── names a pass, or is told one ──▶ in a pass ── names a later one ──▶ in that pass
//                          ▲                        │
//                          └── asks again ── left ◀─┘ names the number of passes
//
// Passes are not in the log: members name them again after a restart of the scheduler. Until all
// members from before it have, or their time is over, the pass of a group without any is uncertain.
//
// Used by DataDispatcher. Actor-confined, deterministic.
class MemberPasses {
 public:
  // Nodes with lower ids than `first_newcomer` may be in a pass without having named it here; they
  // are expected to name it before `named_by`.
  MemberPasses(uint64_t passes, NodeId first_newcomer, absl::Time named_by)
      : passes_(passes), first_newcomer_(first_newcomer), named_by_(named_by) {}

  // The node is in the pass, or, with the number of passes, in none. Request ids of a node grow.
  // kLateCopy: a newer request has named another pass; nothing changes. kBegins: it was in
  // another pass before, or in none.
  enum class Outcome { kLateCopy, kStays, kBegins };
  Outcome Note(NodeId node, uint64_t request_id, uint64_t pass);
  // The node has made a request without a pass: it is in none.
  void NoteWithoutPass(NodeId node) { nodes_[node].pass.reset(); }
  // The node is no longer ALIVE.
  void Forget(NodeId node) { nodes_.erase(node); }

  // The latest pass in which one of the group's members is; without any, nothing. `group` may be
  // null: then it is that of the node alone.
  std::optional<uint64_t> LatestOf(const proto::Group* group, NodeId node) const;
  // The latest pass of all nodes.
  std::optional<uint64_t> Latest() const;
  // Whether a member of the group, other than `node`, may be in a pass that it has not named yet.
  bool MayBeUnnamed(absl::Time now, const proto::Group* group, NodeId node) const;

 private:
  struct Place {
    uint64_t request_id = 0;
    std::optional<uint64_t> pass = std::nullopt;
  };

  const uint64_t passes_;
  const NodeId first_newcomer_;
  const absl::Time named_by_;
  std::map<NodeId, Place> nodes_;  // that have been heard since the scheduler's start
};

}  // namespace covey::scheduler
