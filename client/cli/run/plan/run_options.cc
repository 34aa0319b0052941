// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/plan/run_options.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/cluster/job_durability.h"
#include "common/cluster/limits.h"
#include "common/grouping/group_count.h"
#include "common/net/data_transport.h"

namespace covey::cli {
namespace {

constexpr uint32_t kServerLoopsMax = 64;

absl::Status InRange(absl::string_view flag, uint32_t value, uint32_t low, uint32_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", value, "; choose ", low, " to ", high));
}

}  // namespace

std::vector<std::string> RunOptions::NodeNames() const {
  std::vector<std::string> names = {"scheduler"};
  for (uint32_t rank = 0; rank < servers; ++rank) names.push_back(absl::StrCat("server-", rank));
  for (uint32_t rank = 0; rank < workers(); ++rank) names.push_back(absl::StrCat("worker-", rank));
  return names;
}

std::string RunOptions::TlsOf(IdentityRole role) const {
  return tls.empty() ? "" : absl::StrCat(tls, "/", NameOf(role));
}

absl::string_view OnFailureName(RunOptions::OnFailure value) {
  switch (value) {
    case RunOptions::OnFailure::kContinue:
      return "continue";
    case RunOptions::OnFailure::kRestart:
      return "restart";
    case RunOptions::OnFailure::kStop:
      return "stop";
  }
  return "";
}

absl::StatusOr<RunOptions::OnFailure> ParseOnFailure(absl::string_view name) {
  for (const auto value : {RunOptions::OnFailure::kContinue, RunOptions::OnFailure::kRestart,
                           RunOptions::OnFailure::kStop}) {
    if (name == OnFailureName(value)) return value;
  }
  return absl::InvalidArgumentError("not accepted; choose continue, restart or stop");
}

absl::StatusOr<FaultPlan> ParseKills(absl::string_view text) {
  FaultPlan plan;
  for (const absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<std::string, std::string> parts = absl::StrSplit(word, absl::MaxSplits('@', 1));
    Fault fault{.kind = FaultKind::kKill, .target = parts.first};
    if (parts.first.empty() || !absl::ParseDuration(parts.second, &fault.at)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", word, "' is not of the form NODE@TIME, as in server-0@10s"));
    }
    COVEY_RETURN_IF_ERROR(covey::Validate(fault));
    plan.push_back(std::move(fault));
  }
  return plan;
}

std::string RunOptions::Groups() const { return GroupCountText(groups, plans_groups); }

absl::Status RunOptions::Validate() const {
  COVEY_RETURN_IF_ERROR(InRange("--servers", servers, 1, kProcessesMax));
  COVEY_RETURN_IF_ERROR(InRange("--groups", groups, 1, kProcessesMax));
  COVEY_RETURN_IF_ERROR(InRange("--workers", workers_per_group, 1, kProcessesMax));
  if (workers() > kProcessesMax) {
    return absl::InvalidArgumentError(absl::StrCat("--groups ", groups, " of --workers ",
                                                   workers_per_group, " are ", workers(),
                                                   " processes; choose at most ", kProcessesMax));
  }
  COVEY_RETURN_IF_ERROR(InRange("--server-loops", server_loops, 0, kServerLoopsMax));
  if (!IsDataTransport(transport)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--transport is '", transport, "'; choose ", kDataTransportNames));
  }
  if (job.empty() || job.size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--job has ", job.size(), " bytes; choose 1 to ", kNameBytesMax));
  }
  if (timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("--timeout must be more than 0");
  }
  if (grace < absl::Milliseconds(100) || grace > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--grace is ", absl::FormatDuration(grace), "; choose 100ms to 1h"));
  }
  for (const Fault& fault : faults) {
    if (fault.kind != FaultKind::kKill && fault.kind != FaultKind::kStop &&
        fault.kind != FaultKind::kRestart) {
      return absl::InvalidArgumentError(
          absl::StrCat("--faults: ", FaultKindName(fault.kind), " of ", fault.target,
                       " is not possible here; choose kill, stop or restart"));
    }
  }
  if (store.empty() && !(resume.empty() && snapshot_every.empty())) {
    return absl::InvalidArgumentError(
        "--resume and --snapshot-every need a folder for snapshots; pass --store DIR");
  }
  if (!durability.empty()) {
    const absl::StatusOr<JobDurability> asked = JobDurability::Parse(durability);
    if (!asked.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--durability is '", durability, "'; ", asked.status().message()));
    }
    COVEY_RETURN_IF_ERROR(asked->CheckMeans({.has_store = !store.empty(), .servers = servers}));
  }
  if (!faults.empty()) COVEY_RETURN_IF_ERROR(ValidateNames(faults, NodeNames()));
  if (program.empty()) {
    return absl::InvalidArgumentError(
        "no program for the workers; end the command with: -- PROGRAM ARGUMENTS");
  }
  return absl::OkStatus();
}

}  // namespace covey::cli
