// SPDX-License-Identifier: Apache-2.0
#include "client/config.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/cluster/topology.h"
#include "common/net/scheduler_failover.h"
#include "common/runtime/config_file.h"

namespace covey::client {
namespace {

absl::Status InRange(absl::string_view field, absl::Duration value, absl::Duration low,
                     absl::Duration high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " is ", absl::FormatDuration(value),
                                                 "; choose ", absl::FormatDuration(low), " to ",
                                                 absl::FormatDuration(high)));
}

absl::Status CheckSchedulers(const std::string& addresses) {
  for (const std::string& address : SplitSchedulers(addresses)) {
    const size_t colon = address.rfind(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == address.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("scheduler is '", addresses,
                       "'; give HOST:PORT, separate several by commas (or set COVEY_SCHEDULER)"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ClientConfig::Validate() const {
  COVEY_RETURN_IF_ERROR(CheckSchedulers(scheduler));
  if (job.empty() || job.size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("job has ", job.size(), " bytes; choose 1 to ", kNameBytesMax));
  }
  if (const absl::Status status = CheckTopologyLabels(labels); !status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("labels '", labels, "' ", status.message()));
  }
  if (rank < -1 || rank >= static_cast<int>(kNodesMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank is ", rank, "; choose -1 (any) to ", kNodesMax - 1));
  }
  COVEY_RETURN_IF_ERROR(InRange("join_deadline", join_deadline, absl::Seconds(1), absl::Hours(1)));
  COVEY_RETURN_IF_ERROR(
      InRange("operation_deadline", operation_deadline, absl::Milliseconds(100), absl::Hours(1)));
  COVEY_RETURN_IF_ERROR(InRange("spin", spin, absl::ZeroDuration(), absl::Milliseconds(1)));
  if (bytes_in_flight_max < (size_t{1} << 20) || bytes_in_flight_max > (size_t{1} << 30)) {
    return absl::InvalidArgumentError(
        absl::StrCat("bytes_in_flight_max is ", bytes_in_flight_max, "; choose 1 MiB to 1 GiB"));
  }
  return absl::OkStatus();
}

void ClientConfig::AddTo(ConfigFile& options) {
  options.Add("scheduler", &scheduler, "HOST:PORT[,HOST:PORT] of the scheduler");
  options.Add("job", &job, "name of the job; must equal the scheduler's");
  options.Add("tls", &tls,
              "folder of this process's certificate (covey certificates issue); empty = none");
  options.Add("labels", &labels,
              "zone/rack/host/device; default: from Slurm, Kubernetes or the host");
  options.Add("join-deadline", &join_deadline, "longest wait for the scheduler");
  options.Add("operation-deadline", &operation_deadline,
              "longest wait for a push, pull or collective");
  options.Add("spin", &spin, "how long a thread that waits looks for its result before it sleeps");
}

}  // namespace covey::client
