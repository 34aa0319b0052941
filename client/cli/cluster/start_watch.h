// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/cluster/cluster_file.h"
#include "client/cli/cluster/cluster_plan.h"
#include "client/cli/cluster/remote_hosts.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// How this machine reaches the schedulers of a cluster.
SchedulerTarget TargetOf(const ClusterFile& file);

// Watches processes that were started until they are registered, with the scheduler's eyes and by
// looking whether they still run. ABORTED: one has ended; DEADLINE_EXCEEDED: one is not there after
// ClusterFile::start_deadline; both with the end of its log. UNAVAILABLE: the scheduler runs, and
// is not reached from here. CANCELLED: a signal came. Confined to one thread; blocks.
class StartWatch {
 public:
  // Both outlive this object.
  StartWatch(const ClusterFile& file, RemoteHosts& hosts);

  absl::Status AwaitScheduler(const std::vector<PlannedProcess>& schedulers);
  // Shows progress on standard error.
  absl::Status AwaitMembers(const std::vector<PlannedProcess>& processes);
  // Workers that have left in order. Empty when no scheduler answers.
  std::set<std::string> Finished();

 private:
  // Polls until `is_done` of the scheduler's reply.
  absl::Status Await(const std::vector<PlannedProcess>& processes,
                     absl::FunctionRef<bool(const proto::StatusReply&)> is_done);
  // One of them has ended, and has not left in order.
  absl::Status FindEnded(const std::vector<PlannedProcess>& processes);
  absl::Status Late(const std::vector<PlannedProcess>& processes, const absl::Status& answer);
  std::string Describe(const PlannedProcess& process, absl::string_view what,
                       const std::map<std::string, ProcessReport>& reports) const;
  // By name.
  absl::StatusOr<std::map<std::string, ProcessReport>> Look(
      const std::vector<PlannedProcess>& processes);

  const ClusterFile& file_;
  RemoteHosts& hosts_;
  SchedulerStub scheduler_;
};

// Whether a node of this name is, or was, a member of the job in good order. Pure.
bool IsRegistered(const proto::ClusterView& view, absl::string_view name);
// "1 of 2 servers and 0 of 4 workers are registered". Pure.
std::string ProgressLine(const proto::ClusterView& view,
                         const std::vector<PlannedProcess>& processes);

}  // namespace covey::cli
