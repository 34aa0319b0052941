// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/cluster_down.h"

#include <unistd.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/cluster/cluster_plan.h"
#include "client/cli/cluster/host_script.h"
#include "client/cli/cluster/remote_hosts.h"
#include "client/cli/console/text_file.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

// Beyond the wait, for the script itself.
constexpr absl::Duration kScriptDeadline = absl::Seconds(45);
constexpr absl::Duration kKillWait = absl::Seconds(5);

class Stop {
 public:
  Stop(const ClusterFile& file, const StopOptions& options)
      : file_(file), options_(options), processes_(PlanProcesses(file)), hosts_(file) {}

  absl::Status Run() {
    COVEY_RETURN_IF_ERROR(End(IdentityRole::kWorker));
    // With a store, the last server's end makes the schedulers keep the job's state there.
    COVEY_RETURN_IF_ERROR(End(IdentityRole::kServer));
    COVEY_RETURN_IF_ERROR(End(IdentityRole::kScheduler));
    COVEY_RETURN_IF_ERROR(unreached_);
    WriteAll(STDOUT_FILENO, absl::StrCat("job ", file_.job, " is down\n"));
    return absl::OkStatus();
  }

 private:
  // Names of processes that still run, each with its host.
  absl::StatusOr<std::vector<std::string>> Order(IdentityRole role, const StopOrder& order) {
    std::map<size_t, std::vector<std::string>> names;
    for (const PlannedProcess& each : processes_) {
      if (each.role == role) names[each.host].push_back(each.name);
    }
    std::vector<RemoteHosts::Script> scripts;
    for (const auto& [host, of_host] : names) {
      scripts.push_back(
          {.host = host, .text = StopScript(file_.hosts[host].folder, of_host, order)});
    }
    COVEY_ASSIGN_OR_RETURN(const auto answers, hosts_.Run(scripts, order.wait + kScriptDeadline));
    if (const absl::Status failure = FailureOf(answers); !failure.ok()) unreached_ = failure;
    std::vector<std::string> running;
    for (const auto& answer : answers) {
      const std::string& host = file_.hosts[answer.host].name;
      for (const auto& [name, report] : answer.report.processes) {
        const std::string what = absl::StrCat(name, " on ", host);
        if (report.IsAlive()) running.push_back(what);
        if (report.state == ProcessReport::State::kEnded) {
          WriteAll(STDOUT_FILENO, absl::StrCat(what, " has ended\n"));
        }
      }
    }
    return running;
  }

  absl::Status End(IdentityRole role) {
    COVEY_ASSIGN_OR_RETURN(
        std::vector<std::string> running,
        Order(role, {.signal = StopSignal::kTerminate, .wait = options_.deadline}));
    if (!running.empty() && options_.kill) {
      COVEY_ASSIGN_OR_RETURN(running,
                             Order(role, {.signal = StopSignal::kKill, .wait = kKillWait}));
    }
    if (running.empty()) return absl::OkStatus();
    return absl::DeadlineExceededError(absl::StrCat(
        absl::StrJoin(running, ", "), " still runs ", absl::FormatDuration(options_.deadline),
        " after it was asked to end; wait longer with: covey cluster down --deadline ",
        absl::FormatDuration(2 * options_.deadline), " ", file_.path, ", or add --kill"));
  }

  const ClusterFile& file_;
  const StopOptions options_;
  const std::vector<PlannedProcess> processes_;
  RemoteHosts hosts_;
  absl::Status unreached_;
};

}  // namespace

absl::Status StopCluster(const ClusterFile& file, const StopOptions& options) {
  return Stop(file, options).Run();
}

}  // namespace covey::cli
