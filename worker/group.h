// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/handle.h"
#include "common/cluster/ids.h"
#include "common/collective/algorithm.h"
#include "common/collective/part_range.h"
#include "common/tensor/element_span.h"
#include "common/tensor/reduce_op.h"
#include "common/tensor/wire_format.h"

namespace covey::worker {

struct Collective;
struct GroupPlace;
class WorkerCore;

using client::Handle;

// Options of one collective; the same on all members, but for `input`.
struct CollectiveOptions {
  // kAutomatic: as in WorkerConfig.
  Algorithm algorithm = Algorithm::kAutomatic;
  // Of float32 that is added or only moves; everything else travels as it is. Not topk, which
  // leaves out most elements. Absent: as in WorkerConfig. Sums are in float32 whatever the format,
  // and every member gets the same bits.
  std::optional<WireFormat> format;
  // The order on a busy link; smaller goes first.
  int priority = 0;
  // Of ReduceScatter and AllReduce, instead of the sum.
  ReduceOp op = ReduceOp::kSum;
  // Of ReduceScatter and AllReduce of one tensor: this member's values, of the type and size of
  // `data`, which need hold nothing then, and does not overlap them. They are read before the call
  // returns, and stay as they are, so that a call that failed can be repeated. nullptr: the values
  // are in `data`.
  const void* input = nullptr;
};

// What the cost model says of a collective on an otherwise idle network.
struct Forecast {
  // Its choice, unless WorkerConfig names one.
  Algorithm algorithm = Algorithm::kRing;
  absl::Duration duration;
};

// Collectives among the workers that synchronize every step. All members call the same ones, with
// the same types, sizes and options, in the same order; several may be in flight at once.
//
// Elements are float, double, int32_t or int64_t, the same type on all members. AllGather and
// Broadcast take bytes, too, which may stand for anything.
//
// Memory: `data` is used in place and, unless it is encoded, not copied: it belongs to the
// collective until its handle is done. After an error its contents are undefined;
// CollectiveOptions::input keeps the values of a reduction.
//
// Errors, of a handle: UNAVAILABLE names the member that died or gave up; DEADLINE_EXCEEDED names
// the member waited for; INVALID_ARGUMENT: members called different collectives, or the arguments
// are invalid (bytes have no sum; only sums and copies of float32 are encoded);
// FAILED_PRECONDITION: the group has re-formed, call Refresh.
//
// After an error the group can do nothing more, and the run has to be restarted, with two
// exceptions: UNAVAILABLE when the group has lost a member or messages between members were lost or
// damaged, and FAILED_PRECONDITION. Then the group continues with the remaining members. After
// Refresh all of them repeat the collectives that failed on any of them.
//
// Plans that change the members between two steps (draining, new members) wait for a hybrid step.
// Where a program uses collectives alone, the group stays as it is: a draining member leaves when
// its program ends, and the others learn of it as for any member that leaves.
//
// Values are combined in a fixed order (common/collective/plan.h): the same bits on every member
// and, with the same algorithm, on every run.
//
// Thread-safety: used by one thread, like all parts of a worker; handles are thread-safe.
class Group {
 public:
  GroupId id() const;
  // The rank of this worker within the group.
  uint32_t rank() const;
  // The number of members.
  uint32_t size() const;

  // Sums part i over all members into member i's `data`; the other parts of `data` are overwritten.
  // `parts` has one range per member, disjoint; empty = EvenParts.
  Handle ReduceScatter(ElementSpan data, std::vector<PartRange> parts = {},
                       const CollectiveOptions& options = {});
  // Every member gets part i of each member i.
  Handle AllGather(ElementSpan data, std::vector<PartRange> parts = {},
                   const CollectiveOptions& options = {});
  // Every member gets the sum over all members.
  Handle AllReduce(ElementSpan data, const CollectiveOptions& options = {});
  // The same for many tensors as one: they are copied into one buffer and back, which for small
  // tensors costs far less than one collective each.
  Handle AllReduce(std::vector<std::span<float>> tensors, const CollectiveOptions& options = {});
  // Every member gets the data of the member of rank `root`.
  Handle Broadcast(ElementSpan data, uint32_t root, const CollectiveOptions& options = {});
  // Done when every member has called it.
  Handle Barrier();

  // What to expect of an AllReduce of so many float32 that leaves algorithm and format open, on the
  // links that the members have measured: the same on all members. Blocks briefly. UNAVAILABLE: the
  // members have not met, or this worker is in no group any more.
  absl::StatusOr<Forecast> PredictAllReduce(size_t elements) const;

  // Adopts a change of members, at the end of a step that changed them (hybrid_step.h). Blocks
  // briefly. UNAVAILABLE: this worker is no longer in a group.
  absl::Status Refresh();

 private:
  friend class Worker;
  explicit Group(WorkerCore& core) : core_(core) {}
  Handle Start(Collective collective, const CollectiveOptions& options);

  WorkerCore& core_;
  // As of Worker::Join or the last Refresh.
  std::shared_ptr<const GroupPlace> place_;
};

}  // namespace covey::worker
