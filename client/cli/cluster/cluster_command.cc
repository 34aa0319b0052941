// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/cluster_command.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/cluster/cluster_down.h"
#include "client/cli/cluster/cluster_file.h"
#include "client/cli/cluster/cluster_logs.h"
#include "client/cli/cluster/cluster_options.h"
#include "client/cli/cluster/cluster_plan.h"
#include "client/cli/cluster/cluster_up.h"
#include "client/cli/cluster/host_script.h"
#include "client/cli/cluster/hosts_view.h"
#include "client/cli/cluster/remote_hosts.h"
#include "client/cli/cluster/start_watch.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kLookDeadline = absl::Seconds(20);
constexpr uint32_t kLogLines = 1;

// Paths of this machine are relative to the file.
std::string PathBeside(const std::string& file, const std::string& path) {
  return absl::StartsWith(path, "/")
             ? path
             : absl::StrCat(FolderOf(file), absl::EndsWith(FolderOf(file), "/") ? "" : "/", path);
}

absl::StatusOr<ClusterFile> ReadFile(const std::string& path) {
  COVEY_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  COVEY_ASSIGN_OR_RETURN(ClusterFile file, ParseClusterFile(text, path));
  COVEY_RETURN_IF_ERROR(ResolveAddresses(&file));
  file.tls = PathBeside(path, file.tls);
  for (std::string& each : file.copy) {
    each = PathBeside(path, each);
    if (access(each.c_str(), R_OK) != 0) {
      return absl::NotFoundError(absl::StrCat(path, ": copy: there is no file ", each,
                                              " that can be read; correct its path"));
    }
  }
  if (!file.ssh.identity.empty()) file.ssh.identity = PathBeside(path, file.ssh.identity);
  return file;
}

int ShowStatus(const ClusterFile& file, const ClusterOptions& asked) {
  const std::vector<PlannedProcess> processes = PlanProcesses(file);
  std::map<size_t, std::vector<std::string>> names;
  for (const PlannedProcess& each : processes) names[each.host].push_back(each.name);
  std::vector<RemoteHosts::Script> scripts;
  for (const auto& [host, of_host] : names) {
    scripts.push_back(
        {.host = host, .text = StateScript(file.hosts[host].folder, of_host, kLogLines)});
  }
  const auto answers = RemoteHosts(file).Run(scripts, kLookDeadline);
  if (!answers.ok()) {
    PrintFailure("cluster status", answers.status());
    return kExitFailed;
  }
  const std::vector<HostsRow> rows =
      RowsOf(file, processes, *answers, SchedulerStub(TargetOf(file)).GetStatus());
  WriteAll(STDOUT_FILENO, asked.json ? HostsJson(rows) : HostsText(rows));
  const absl::Status failure = FailureOf(*answers);
  if (!failure.ok()) return ExitCodeOf(failure);
  const bool all_well =
      std::all_of(rows.begin(), rows.end(), [](const HostsRow& row) { return row.is_well; });
  return all_well ? kExitOk : kExitFailed;
}

int Report(absl::string_view command, const absl::Status& status) {
  if (status.ok()) return kExitOk;
  PrintFailure(command, status);
  return ExitCodeOf(status);
}

int Run(const ClusterFile& file, const ClusterOptions& asked) {
  switch (asked.action) {
    case ClusterOptions::Action::kUp:
      if (asked.dry_run) {
        WriteAll(STDOUT_FILENO, DryRunText(file));
        return kExitOk;
      }
      return Report("cluster up", StartCluster(file));
    case ClusterOptions::Action::kStatus:
      return ShowStatus(file, asked);
    case ClusterOptions::Action::kDown:
      return Report("cluster down",
                    StopCluster(file, {.deadline = asked.deadline, .kill = asked.kill}));
    case ClusterOptions::Action::kLogs:
      return Report("cluster logs", PrintLogs(file, asked.names,
                                              {.lines = asked.lines, .is_followed = asked.follow}));
  }
  return kExitFailed;
}

}  // namespace

int ClusterCommand(int count, const char* const* arguments) {
  ClusterOptions asked;
  ConfigFile options(
      "covey cluster",
      "Runs a cluster on plain hosts, over ssh, as a file describes it. `up` starts what does not "
      "run, with certificates that it makes on this machine, and waits until all is registered. "
      "`status` shows each process as its host and the scheduler see it. `down` ends workers, then "
      "servers, then the scheduler. `logs` prints what the processes print. Exit code: 0 ok, 1 "
      "failed or not all is well, 2 the command line or the file is wrong, 3 a host or the "
      "scheduler is not reached.");
  asked.AddTo(options);
  if (const auto code = LoadWithShortOutput(options, count, arguments)) return *code;
  if (const absl::Status status = asked.Check(options); !status.ok()) {
    PrintFailure(arguments[0], status);
    return kExitUsage;
  }
  const absl::StatusOr<ClusterFile> file = ReadFile(asked.file);
  if (!file.ok()) {
    PrintFailure(arguments[0], file.status());
    return kExitUsage;
  }
  return Run(*file, asked);
}

}  // namespace covey::cli
