// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/config.h"
#include "worker/group.h"

namespace covey::worker {

class WorkerActor;
class WorkerCore;

// A process that trains as one of many. The entry point of training programs:
//
//   WorkerConfig config;  // or config.AddTo(options): flags and environment
//   config.cluster.scheduler = "127.0.0.1:7000";
//   COVEY_ASSIGN_OR_RETURN(auto worker, Worker::Join(config));
//   Handle sum = worker->group().AllReduce(gradient);  // among the members of its group
//   COVEY_RETURN_IF_ERROR(sum.Wait());
//
// hybrid_step.h adds the servers, and data_source.h divides a data set among workers.
//
// The destructor ends pending operations, waits up to two seconds until received pushes are durable
// (ten if the worker drains), and leaves the cluster, up to two seconds. One thread uses a worker,
// except RequestDrain; a second thread (the loop) belongs to it.
class Worker {
 public:
  // Registers, and blocks until the scheduler has formed the groups. Its supervisor counts
  // it as started once it is registered (common/runtime/supervisor_notice.h).
  //   UNAVAILABLE: no scheduler at this address, or config.metrics cannot be listened at.
  //   ALREADY_EXISTS: the rank is taken.
  //   DEADLINE_EXCEEDED: names the missing members. CANCELLED: asked to leave before that, or
  //   config.gives_up.
  //   INVALID_ARGUMENT: bad config, or another job's scheduler.
  //   FAILED_PRECONDITION: the job has all its workers, or the folder of certificates is of no use.
  static absl::StatusOr<std::unique_ptr<Worker>> Join(const WorkerConfig& config);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Among all workers of all groups.
  uint32_t rank() const;
  uint32_t size() const { return size_; }
  uint32_t groups() const { return groups_; }
  // The groups that the job began with, without those that late workers made. The same on all
  // workers, whenever they join, so that definitions of tables may depend on it.
  uint32_t initial_groups() const { return initial_groups_; }
  Group& group() { return group_; }
  const Group& group() const { return group_; }

  // Returns when all workers of all groups have called it with this name as often as this one.
  // DEADLINE_EXCEEDED: names the missing workers. UNAVAILABLE: names a worker that has died
  // meanwhile.
  absl::Status Barrier(absl::string_view name, absl::Duration timeout);

  // Asks the scheduler to drain this worker. The group continues without it after its next step,
  // and the hybrid step's calls then end with CANCELLED (hybrid_step.h), so that the program can
  // end with success. Does not block; thread-safe. UNAVAILABLE: the loop is stopping, or its queue
  // is full.
  absl::Status RequestDrain();

  // The program takes no step for a while: it evaluates, saves or compiles. Until it is back, and
  // for `at_most` at the most, its group waits for it: the others' deadlines end no sooner than
  // operation_deadline after its return, and neither the straggler ladder nor the rule for late
  // members counts the time. The program is back when it calls SetBack, submits a gradient
  // (HybridStep::Submit) or starts a collective (Group). A second call replaces the first. A worker
  // that dies is noticed as ever.
  //
  // The others learn of it from heartbeats, within two of the scheduler's intervals (1 s unless it
  // is told otherwise): shorter deadlines may pass before. Neither call blocks.
  //   INVALID_ARGUMENT: the reason is not 1 to kNameBytesMax printable characters of ASCII, or
  //   `at_most` is not above 0 and at most kAwayMax (common/cluster/limits.h).
  //   UNAVAILABLE: as RequestDrain.
  absl::Status SetAway(absl::string_view reason, absl::Duration at_most);
  // Without effect when the program is not away.
  absl::Status SetBack();

  // For the library's own classes.
  WorkerCore& core() { return *core_; }

 private:
  explicit Worker(const WorkerConfig& config);
  // Runs on the loop, while the group is ready.
  void AdoptGroup(WorkerActor& actor);

  std::unique_ptr<WorkerCore> core_;
  Group group_;
  uint32_t size_ = 0;
  uint32_t groups_ = 0;
  uint32_t initial_groups_ = 0;
};

}  // namespace covey::worker
