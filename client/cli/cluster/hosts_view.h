// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/cluster/cluster_file.h"
#include "client/cli/cluster/cluster_plan.h"
#include "client/cli/cluster/remote_hosts.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// The output of `covey cluster status`. Pure.

// A process of the file, as its host and the scheduler see it.
struct HostsRow {
  std::string host;
  std::string process;
  // 0 = none.
  int64_t process_id = 0;
  // "running", "ended", "finished", "not started", "unreachable".
  std::string state;
  // "alive", "dead", "left"; empty = the scheduler does not know it.
  std::string in_job;
  // Why it is not as it should be; of an ended one also the last line of its log.
  std::string note;
  // Runs and is in the job, or has finished.
  bool is_well = false;
};

// By host, in the order of the file.
std::vector<HostsRow> RowsOf(const ClusterFile& file, const std::vector<PlannedProcess>& processes,
                             const RemoteHosts::Answers& answers,
                             const absl::StatusOr<proto::StatusReply>& status);
std::string HostsText(const std::vector<HostsRow>& rows);
// "processes", each with the fields above.
std::string HostsJson(const std::vector<HostsRow>& rows);

}  // namespace covey::cli
