#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/handle.h"
#include "common/cluster/ids.h"
#include "common/collective/plan.h"
#include "common/tensor/wire_format.h"
#include "worker/collective/collective.h"
#include "worker/config.h"
#include "worker/group/group_round.h"

namespace covey::client {
class Connection;
}

namespace covey::worker {

class Worker;
class WorkerActor;

using client::Handle;

// How one collective runs; the same on all members.
struct CollectiveOptions {
  // kAutomatic: as WorkerConfig says.
  Algorithm algorithm = Algorithm::kAutomatic;
  // Nothing: as WorkerConfig says. Sums are in float32 whatever the format, and everybody gets the
  // same bits.
  std::optional<WireFormat> format;
  // Sooner ones first where a link is busy; smaller is sooner.
  int priority = 0;
};

// Collectives among the workers that synchronise every step. All members call the same ones, with
// the same sizes and options, in the same order; several may be under way at once.
//
// Memory: `data` is used in place and, in float32, not copied: it belongs to the collective until
// its handle is done.
//
// Errors, of a handle: UNAVAILABLE names the member that died or gave up; DEADLINE_EXCEEDED names
// the member waited for; INVALID_ARGUMENT: members called different collectives, or the arguments
// make no sense; FAILED_PRECONDITION: the members have met anew, call Refresh. After an error the group
// can do nothing more: the run has to be started again. Except with UNAVAILABLE when it has lost a
// member, or messages between members were lost or damaged, and with FAILED_PRECONDITION: then it goes
// on with those that are left, and after Refresh they can call again what has failed (all of them, and
// those too for which it had not failed).
//
// Plans that change the members between two steps (drain, newcomers) wait for a hybrid step. Where a
// program uses collectives alone, the group stays as it is: who is asked to go is let go when its
// program ends, which the others learn as for any member that leaves.
//
// Sums are taken in a fixed order (common/collective/plan.h): the same bits on every member and,
// with the same algorithm, on every run.
//
// Thread-safety: called by one thread, like all of a worker; handles are thread-safe.
class Group {
 public:
  GroupId id() const { return id_; }
  // Of this worker within the group.
  uint32_t rank() const { return rank_; }
  // Members.
  uint32_t size() const { return size_; }

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

  // Takes in a change of members, at the end of a step that changed them (hybrid_step.h). Blocks for
  // a moment. UNAVAILABLE: this worker is in no group any more.
  absl::Status Refresh();

 private:
  friend class Worker;
  explicit Group(Worker& worker) : worker_(worker) {}
  Handle Start(Collective collective, const CollectiveOptions& options);

  Worker& worker_;
  GroupId id_;
  uint32_t rank_ = 0;
  uint32_t size_ = 0;
  GroupRound round_;
};

// A process that trains, as one of many. The entry point of training programs:
//
//   WorkerConfig config;  // or config.AddTo(options): flags and environment
//   config.cluster.scheduler = "127.0.0.1:7000";
//   COVEY_ASSIGN_OR_RETURN(auto worker, Worker::Join(config));
//   Handle sum = worker->group().AllReduce(gradient);  // among the members of its group
//   COVEY_RETURN_IF_ERROR(sum.Wait());
//
// and for the hybrid step, which puts the servers behind it: hybrid_step.h.
//
// Destruction ends what is under way, waits up to two seconds for what servers have received to be
// durable (ten when the worker was asked to go), and leaves the cluster, up to two seconds. One thread
// uses a worker, RequestDrain apart; a second one (the loop) belongs to it.
class Worker {
 public:
  // Registers, and blocks until the scheduler has formed the groups.
  //   UNAVAILABLE: no scheduler there. ALREADY_EXISTS: the rank is taken. DEADLINE_EXCEEDED: says
  //   who is missing. CANCELLED: asked to go before that. INVALID_ARGUMENT: bad config, or another
  //   job's scheduler.
  static absl::StatusOr<std::unique_ptr<Worker>> Join(const WorkerConfig& config);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Among all workers of all groups.
  uint32_t rank() const;
  uint32_t size() const { return size_; }
  uint32_t groups() const { return groups_; }
  Group& group() { return group_; }
  const Group& group() const { return group_; }

  // Returns when all workers of all groups have called it with this name as often as this one.
  // DEADLINE_EXCEEDED: names who is missing. UNAVAILABLE: names a worker that has died meanwhile.
  absl::Status Barrier(absl::string_view name, absl::Duration timeout);

  // Asks the scheduler to let this worker go. The group goes on without it after its next step, and
  // then the hybrid step's calls end with CANCELLED (hybrid_step.h): the program can end well. Does not
  // block; thread-safe. UNAVAILABLE: the loop is stopping, or flooded.
  absl::Status RequestDrain();

 private:
  friend class Group;
  friend class HybridStep;
  friend class WorkSource;
  explicit Worker(const WorkerConfig& config);
  // Runs `work` on the loop while the group is ready: that a member dies never comes between, and
  // then the next generation is waited for. The work's status; DEADLINE_EXCEEDED, and it never runs:
  // not ready within form_deadline.
  absl::Status WhenReady(const std::function<absl::Status()>& work);
  // On the loop: what keeps the group from being ready.
  absl::Status NotReady() const;
  // On the loop, while the group is ready.
  absl::Status TakeInGroup();

  const WorkerConfig config_;
  std::unique_ptr<client::Connection> connection_;
  WorkerActor* actor_ = nullptr;  // the connection's; on the loop only
  Group group_;
  uint32_t size_ = 0;
  uint32_t groups_ = 0;
};

}  // namespace covey::worker
