// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/start_watch.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/cluster/cluster_certificates.h"
#include "client/cli/cluster/host_script.h"
#include "client/cli/console/text_file.h"
#include "client/cli/scale/fleet_view.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(300);
// How often the hosts are asked whether the processes still run.
constexpr absl::Duration kLook = absl::Seconds(2);
constexpr absl::Duration kLookDeadline = absl::Seconds(20);
constexpr uint32_t kLogLines = 5;

}  // namespace

SchedulerTarget TargetOf(const ClusterFile& file) {
  return {.addresses = SchedulerAddresses(file),
          .tls = file.insecure ? "" : CertificateFolder(file.tls, "viewer")};
}

bool IsRegistered(const proto::ClusterView& view, absl::string_view name) {
  const proto::Node* const node = FindNewest(view, name);
  return node != nullptr && node->state() != proto::Node::DEAD;
}

std::string ProgressLine(const proto::ClusterView& view,
                         const std::vector<PlannedProcess>& processes) {
  struct Count {
    int there = 0;
    int all = 0;
  };
  std::map<IdentityRole, Count> counts;
  for (const PlannedProcess& each : processes) {
    Count& count = counts[each.role];
    ++count.all;
    if (IsRegistered(view, each.name)) ++count.there;
  }
  const Count& servers = counts[IdentityRole::kServer];
  const Count& workers = counts[IdentityRole::kWorker];
  return absl::StrCat(servers.there, " of ", servers.all, " servers and ", workers.there, " of ",
                      workers.all, " workers are registered");
}

StartWatch::StartWatch(const ClusterFile& file, RemoteHosts& hosts)
    : file_(file), hosts_(hosts), scheduler_(TargetOf(file)) {}

std::set<std::string> StartWatch::Finished() {
  std::set<std::string> finished;
  const auto status = scheduler_.GetStatus();
  if (!status.ok()) return finished;
  for (const proto::Node& node : status->view().nodes()) {
    const proto::Node* const newest = FindNewest(status->view(), node.name());
    if (newest->role() == proto::WORKER && newest->state() == proto::Node::LEFT) {
      finished.insert(node.name());
    }
  }
  return finished;
}

absl::Status StartWatch::AwaitScheduler(const std::vector<PlannedProcess>& schedulers) {
  COVEY_RETURN_IF_ERROR(Await(schedulers, [](const proto::StatusReply&) { return true; }));
  // Something else may answer at its port.
  return FindEnded(schedulers);
}

absl::Status StartWatch::AwaitMembers(const std::vector<PlannedProcess>& processes) {
  std::string last;
  return Await(processes, [&](const proto::StatusReply& status) {
    const std::string line = ProgressLine(status.view(), processes);
    if (line != last) WriteAll(STDERR_FILENO, absl::StrCat(line, "\n"));
    last = line;
    return std::all_of(processes.begin(), processes.end(), [&](const PlannedProcess& each) {
      return each.role == IdentityRole::kScheduler || IsRegistered(status.view(), each.name);
    });
  });
}

absl::Status StartWatch::Await(const std::vector<PlannedProcess>& processes,
                               absl::FunctionRef<bool(const proto::StatusReply&)> is_done) {
  const absl::Time until = MonotonicNow() + file_.start_deadline;
  absl::Time look = MonotonicNow() + kLook;
  for (;;) {
    const absl::StatusOr<proto::StatusReply> status = scheduler_.GetStatus();
    if (status.ok() && status->view().job_name() == file_.job && is_done(*status)) {
      return absl::OkStatus();
    }
    if (MonotonicNow() > look) {
      COVEY_RETURN_IF_ERROR(FindEnded(processes));
      look = MonotonicNow() + kLook;
    }
    if (MonotonicNow() > until) return Late(processes, status.status());
    const bool has_waited =
        absl::IsUnavailable(status.status()) && !scheduler_.AwaitConnection(kPoll);
    if (WaitForTermination(has_waited ? absl::ZeroDuration() : kPoll).has_value()) {
      return absl::CancelledError(
          absl::StrCat("interrupted; what was started goes on, see covey "
                       "cluster status ",
                       file_.path));
    }
  }
}

absl::StatusOr<std::map<std::string, ProcessReport>> StartWatch::Look(
    const std::vector<PlannedProcess>& processes) {
  std::map<size_t, std::vector<std::string>> names;
  for (const PlannedProcess& each : processes) names[each.host].push_back(each.name);
  std::vector<RemoteHosts::Script> scripts;
  for (const auto& [host, of_host] : names) {
    scripts.push_back(
        {.host = host, .text = StateScript(file_.hosts[host].folder, of_host, kLogLines)});
  }
  COVEY_ASSIGN_OR_RETURN(const auto answers, hosts_.Run(scripts, kLookDeadline));
  COVEY_RETURN_IF_ERROR(FailureOf(answers));
  std::map<std::string, ProcessReport> reports;
  for (const auto& answer : answers) {
    reports.insert(answer.report.processes.begin(), answer.report.processes.end());
  }
  return reports;
}

absl::Status StartWatch::FindEnded(const std::vector<PlannedProcess>& processes) {
  COVEY_ASSIGN_OR_RETURN(const auto reports, Look(processes));
  // Asked afterwards: a worker may have finished meanwhile.
  std::optional<std::set<std::string>> finished;
  for (const PlannedProcess& each : processes) {
    const auto report = reports.find(each.name);
    if (report == reports.end() || report->second.IsAlive()) continue;
    if (!finished.has_value()) finished = Finished();
    if (finished->contains(each.name)) continue;
    return absl::AbortedError(Describe(each, "has ended", reports));
  }
  return absl::OkStatus();
}

absl::Status StartWatch::Late(const std::vector<PlannedProcess>& processes,
                              const absl::Status& answer) {
  COVEY_RETURN_IF_ERROR(FindEnded(processes));
  if (!answer.ok()) {
    return absl::Status(answer.code(), absl::StrCat(file_.scheduler.at,
                                                    ": the scheduler runs, but this machine "
                                                    "has no answer: ",
                                                    answer.message()));
  }
  COVEY_ASSIGN_OR_RETURN(const auto reports, Look(processes));
  const absl::StatusOr<proto::StatusReply> status = scheduler_.GetStatus();
  for (const PlannedProcess& each : processes) {
    if (each.role == IdentityRole::kScheduler || !status.ok() ||
        IsRegistered(status->view(), each.name)) {
      continue;
    }
    return absl::DeadlineExceededError(Describe(
        each,
        absl::StrCat("has not registered within ", absl::FormatDuration(file_.start_deadline)),
        reports));
  }
  return absl::DeadlineExceededError(absl::StrCat(
      file_.scheduler.at, ": the scheduler that answers at ", SchedulerAddresses(file_),
      " is that of another job; give `scheduler` another port"));
}

std::string StartWatch::Describe(const PlannedProcess& process, absl::string_view what,
                                 const std::map<std::string, ProcessReport>& reports) const {
  std::string text =
      absl::StrCat(process.at, ": ", process.name, " on ", file_.hosts[process.host].name, " ",
                   what, "; see: covey cluster logs ", file_.path, " ", process.name);
  const auto report = reports.find(process.name);
  if (report == reports.end() || report->second.last_lines.empty()) return text;
  absl::StrAppend(&text, "\nthe end of its log:");
  for (const std::string& line : report->second.last_lines) absl::StrAppend(&text, "\n  ", line);
  return text;
}

}  // namespace covey::cli
