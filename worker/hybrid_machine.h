#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/client_machine.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "worker/bucket_flow.h"
#include "worker/group_machine.h"
#include "worker/hybrid_options.h"
#include "worker/model_layout.h"
#include "worker/server_link.h"

namespace covey::worker {

// The hybrid step of one group member: synchronous inside the group, under each table's contract
// between groups. Each tensor of the model is one table; small ones share a bucket
// (model_layout.h), and each bucket goes its own way (bucket_flow.h), so that one's communication
// overlaps another's and the program's computation. Members may submit tensors in different orders.
//
// Every member's links work: member i answers for its own part only. Where the part is updated, the
// mode and the contract say (part_update.h): on the servers, or here.
//
// Invariants: all members end a step with the same bits in `values`; with one group under `bsp`
// they are those of one process that sums gradients in the order that the group's algorithm and
// ModelLayout::parts_of give, and applies one optimizer update. When one member's update fails, the
// group fails with its status: half a step is no step.
//
// Actor-confined. Deterministic. Client and group machine outlive it, and see every message first.
class HybridMachine {
 public:
  using Work = worker::Work;

  HybridMachine(client::ClientMachine& client, GroupMachine& group)
      : group_(group), link_(client, group) {}

  // The model: one table per tensor, the same ones in the same order on every member, each within
  // its contract in force. When the group has formed, and nothing is under way.
  // NOT_FOUND: a table is not in this view. INVALID_ARGUMENT: mode and contract do not go together,
  // or a definition that this member must follow is not valid; names the table.
  absl::Status SetTables(const ClusterView& view, std::span<const TableId> tables,
                         const HybridOptions& options);
  // Elements of each tensor.
  size_t element_count(size_t tensor) const { return layout_->place_of(tensor).count; }

  // Steps are counted from 1; every tensor is submitted once per step, in any order.
  void BeginStep(absl::Time now, Outbox& outbox);
  Step step() const { return step_; }
  // Preconditions: after SetTables and BeginStep; spans have the tensor's size.
  void Submit(absl::Time now, Work work, Outbox& outbox);
  // The newest values of the servers (of the members, where these update): every member gets the
  // same bits. For all tensors, by all members, between the same steps.
  void Pull(absl::Time now, Work work, Outbox& outbox);
  // With lag, the values of the last step submitted; else what is there already.
  void Flush(absl::Time now, Work work, Outbox& outbox);

  // See ServerLink.
  double TakeStaleness() { return link_.TakeStaleness(); }

 private:
  BucketFlow& FlowOf(size_t tensor) { return *flows_[layout_->bucket_of(tensor)]; }

  GroupMachine& group_;
  ServerLink link_;
  std::unique_ptr<const ModelLayout> layout_;
  std::vector<std::shared_ptr<BucketFlow>> flows_;  // by bucket
  Step step_;
  uint64_t pulls_ = 0;
};

}  // namespace covey::worker
