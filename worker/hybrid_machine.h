#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/client_machine.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "worker/group_machine.h"
#include "worker/part_map.h"

namespace covey::worker {

// The hybrid step of one group member: synchronous inside the group, under each table's contract
// between groups. Each tensor of the model is one table and goes its own way, so that one's
// communication overlaps another's and the program's computation:
//
//   Submit ─▶ scale by samples ─▶ reduce-scatter ─▶ push own part ─┐
//                                                                  ├▶ its values ─▶ all-gather ─▶
//                                                                  done
//   Pull   ───────────────────────────────────────▶ pull own part ─┘
//
// Every member's links work: member i talks to the servers about its own part only (PartMap). A
// push's producer is the group and its sequence the step, so each shard takes one update per group
// and step, whoever sends it.
//
// Invariants: all members end a step with the same bits in `values`; with one group under `bsp`
// they are those of ReferenceReduce and one optimizer update. When one member's push fails, the
// group fails with its status: half a step is no step.
//
// Actor-confined. Deterministic. Client and group machine outlive it, and see every message first.
class HybridMachine {
 public:
  using Done = std::function<void(absl::Time, const absl::Status&, Outbox&)>;

  HybridMachine(client::ClientMachine& client, GroupMachine& group)
      : client_(client), group_(group) {}

  // The model: one table per tensor, the same ones in the same order on every member. Once, when
  // the group has formed. NOT_FOUND: a table is not in this view.
  absl::Status SetTables(const ClusterView& view, std::span<const TableId> tables);
  // Elements of each tensor.
  size_t element_count(size_t tensor) const { return tensors_[tensor].element_count; }

  // One tensor's way through a step or a pull. The memory is this machine's until `done`.
  struct Work {
    size_t tensor = 0;
    // Mean over this member's samples; overwritten. Ignored by Pull.
    std::span<float> gradient;
    // Where the new values go.
    std::span<float> values;
    // Examples behind the gradient; may be 0, then the gradient counts for nothing. A step in which
    // no member has any counts as one example with gradient zero, because each shard must hear of
    // each step.
    uint64_t samples = 0;
    absl::Time deadline = absl::InfiniteFuture();
    // Called once, always. May run inside the call that starts the work.
    Done done;
  };

  // Steps are counted from 1; every tensor is submitted once per step, in the same order on all
  // members.
  void BeginStep() { step_ = step_.Next(); }
  Step step() const { return step_; }
  // Preconditions: after SetTables and BeginStep; spans have the tensor's size.
  void Submit(absl::Time now, Work work, Outbox& outbox);
  // First values: every member gets the servers' bits.
  void Pull(absl::Time now, Work work, Outbox& outbox);

  // Mean, over the pushes since the last call, of updates by others between the values that a
  // gradient was computed on and its application. 0 when there were none.
  double TakeStaleness();

 private:
  struct Tensor {
    TableId table;
    std::string name;
    size_t element_count = 0;
    std::vector<PartRange> ranges;
    TablePart own;
  };
  struct Journey;

  void Exchange(absl::Time now, const std::shared_ptr<Journey>& journey, uint64_t samples,
                Outbox& outbox);
  void StartGather(absl::Time now, const std::shared_ptr<Journey>& journey, Outbox& outbox);
  void Settle(absl::Time now, const std::shared_ptr<Journey>& journey, const absl::Status& status,
              Outbox& outbox);

  client::ClientMachine& client_;
  GroupMachine& group_;
  std::vector<Tensor> tensors_;
  Step step_;
  uint64_t staleness_sum_ = 0;
  uint64_t staleness_count_ = 0;
};

}  // namespace covey::worker
