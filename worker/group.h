// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "client/handle.h"
#include "common/cluster/ids.h"
#include "common/collective/algorithm.h"
#include "common/collective/part_range.h"
#include "common/tensor/wire_format.h"

namespace covey::worker {

struct Collective;
struct GroupPlace;
class WorkerCore;

using client::Handle;

// How one collective runs; the same on all members.
struct CollectiveOptions {
  // kAutomatic: as WorkerConfig says.
  Algorithm algorithm = Algorithm::kAutomatic;
  // Nothing: as WorkerConfig says. Sums are in float32 whatever the format, and every member gets
  // the same bits.
  std::optional<WireFormat> format;
  // Sooner ones first where a link is busy; smaller is sooner.
  int priority = 0;
};

// Collectives among the workers that synchronize every step. All members call the same ones, with
// the same sizes and options, in the same order; several may be under way at once.
//
// Memory: `data` is used in place and, in float32, not copied: it belongs to the collective until
// its handle is done.
//
// Errors, of a handle: UNAVAILABLE names the member that died or gave up; DEADLINE_EXCEEDED names
// the member waited for; INVALID_ARGUMENT: members called different collectives, or the arguments
// make no sense; FAILED_PRECONDITION: the members have met again, call Refresh.
//
// After an error the group can do nothing more, and the run has to be started again, with two
// exceptions: UNAVAILABLE when the group has lost a member or messages between members were lost or
// damaged, and FAILED_PRECONDITION. Then the group goes on with the members that are left. After
// Refresh all of them call again what has failed on any of them.
//
// Plans that change the members between two steps (drain, newcomers) wait for a hybrid step. Where
// a program uses collectives alone, the group stays as it is: a member that is asked to go is let
// go when its program ends, which the others learn as for any member that leaves.
//
// Sums are taken in a fixed order (common/collective/plan.h): the same bits on every member and,
// with the same algorithm, on every run.
//
// Thread-safety: called by one thread, like all of a worker; handles are thread-safe.
class Group {
 public:
  GroupId id() const;
  // Of this worker within the group.
  uint32_t rank() const;
  // Members.
  uint32_t size() const;

  // Part i is summed over all members into member i's `data`; the other parts of `data` are lost.
  // `parts` has one range per member, disjoint; empty = EvenParts.
  Handle ReduceScatter(std::span<float> data, std::vector<PartRange> parts = {},
                       const CollectiveOptions& options = {});
  // Every member gets each member i's part i.
  Handle AllGather(std::span<float> data, std::vector<PartRange> parts = {},
                   const CollectiveOptions& options = {});
  // Every member gets the sum over all members.
  Handle AllReduce(std::span<float> data, const CollectiveOptions& options = {});
  // The same for many tensors as one: they are copied into one piece of memory and back, which for
  // small ones costs far less than a collective each.
  Handle AllReduce(std::vector<std::span<float>> tensors, const CollectiveOptions& options = {});
  // Every member gets what the member of rank `root` has.
  Handle Broadcast(std::span<float> data, uint32_t root, const CollectiveOptions& options = {});
  // Done when every member has called it.
  Handle Barrier();

  // Takes in a change of members, at the end of a step that changed them (hybrid_step.h). Blocks
  // for a moment. UNAVAILABLE: this worker is in no group any more.
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
