// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/engine/connection.h"
#include "common/cluster/ids.h"
#include "common/metrics/metric_page.h"
#include "common/runtime/actor.h"
#include "common/runtime/loop_runner.h"
#include "worker/config.h"
#include "worker/data/step_numbers.h"
#include "worker/engine/worker_actor.h"
#include "worker/group/communicator.h"
#include "worker/group/group_round.h"
#include "worker/hybrid/away_clock.h"

namespace covey::worker {

// This worker's place in one round of its group; a Group uses it until it is refreshed.
struct GroupPlace {
  GroupId id;
  uint32_t rank = 0;
  uint32_t size = 0;
  GroupRound round;

  static std::shared_ptr<const GroupPlace> In(const Communicator& group) {
    return std::make_shared<const GroupPlace>(GroupPlace{
        .id = group.id(), .rank = group.rank(), .size = group.size(), .round = group.round()});
  }
  bool IsIn(const Communicator& group) const { return group.round() == round && group.formed(); }
};

// Internals that the classes of the public interface share: a worker's options, its connection to
// the cluster, and the actor on its loop.
//
// Thread-safety: as Worker.
class WorkerCore {
 public:
  explicit WorkerCore(const WorkerConfig& config) : config_(config) {}
  // Ends the group's pending operations before the loop stops. A draining worker first waits until
  // received pushes are durable.
  ~WorkerCore();

  // Registers with the scheduler; call it first, and once. Errors as client::Connection::Open.
  absl::Status Open();

  const WorkerConfig& config() const { return config_; }
  client::Connection& connection() { return *connection_; }
  // Only on the program's thread.
  StepNumbers& steps() { return steps_; }
  // The same: how long the program has been away, and as Worker.
  const AwayClock& away() const { return away_; }
  absl::Status SetAway(std::string reason, absl::Duration at_most);
  // Without effect, and without a message, unless the program is away.
  absl::Status SetBack();

  using Task = std::function<void(WorkerActor&, absl::Time, Outbox&)>;
  // Runs `task` on the loop, later. UNAVAILABLE, and it never runs: the loop is stopping, or its
  // queue is full.
  absl::Status Post(Task task);
  // The same, when the program is about to wait for a handle of runner(): `task` may wait until
  // then, for at most 0.1 ms.
  absl::Status PostBeforeWaiting(Task task);
  // By which threads that wait for results run the loop.
  const std::shared_ptr<LoopRunner>& runner() const { return connection_->runner(); }
  // Runs `task` on the loop and waits for it. UNAVAILABLE: as Post.
  absl::Status Run(const Task& task);
  // Runs `work` on the loop while the group is ready. If a member dies before it runs, it waits for
  // the next generation. Returns the work's status; DEADLINE_EXCEEDED, and it never runs: the group
  // was not ready within form_deadline. `gives_up`: as in WorkerConfig, CANCELLED.
  absl::Status RunWhenReady(const std::function<absl::Status(WorkerActor&)>& work,
                            const std::function<bool()>& gives_up = nullptr);

 private:
  // Everybody who reaches data_host may take part.
  bool is_exposed() const;
  // On the loop.
  void AddMetrics(absl::Time now, MetricPage& page) const;
  std::function<void(absl::Time, Outbox&)> WorkOf(Task task) const;
  static absl::Status PostedStatus(bool posted);
  // Runs on the loop: the reason why the group is not ready.
  absl::Status NotReady() const;

  const WorkerConfig config_;
  std::unique_ptr<client::Connection> connection_;
  StepNumbers steps_;
  AwayClock away_;
  WorkerActor* actor_ = nullptr;  // owned by the connection; used on the loop only
};

}  // namespace covey::worker
