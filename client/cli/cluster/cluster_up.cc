// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/cluster_up.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/cluster/cluster_certificates.h"
#include "client/cli/cluster/cluster_plan.h"
#include "client/cli/cluster/host_script.h"
#include "client/cli/cluster/remote_hosts.h"
#include "client/cli/cluster/shell_words.h"
#include "client/cli/cluster/ssh_commands.h"
#include "client/cli/cluster/start_watch.h"
#include "client/cli/console/text_file.h"
#include "common/base/status_macros.h"
#include "common/security/wall_clock.h"

namespace covey::cli {
namespace {

using Scripts = std::vector<RemoteHosts::Script>;

constexpr absl::Duration kScriptDeadline = absl::Minutes(1);

enum class Part { kSchedulers, kMembers, kAll };

bool IsIn(Part part, const PlannedProcess& process) {
  return part == Part::kAll ||
         (part == Part::kSchedulers) == (process.role == IdentityRole::kScheduler);
}

std::vector<PlannedProcess> On(const std::vector<PlannedProcess>& processes, size_t host,
                               Part part) {
  std::vector<PlannedProcess> found;
  for (const PlannedProcess& each : processes) {
    if (each.host == host && IsIn(part, each)) found.push_back(each);
  }
  return found;
}

std::vector<std::string> NamesOf(const std::vector<PlannedProcess>& processes) {
  std::vector<std::string> names;
  for (const PlannedProcess& each : processes) names.push_back(each.name);
  return names;
}

// What each host that has processes of this part gets.
Scripts PrepareScripts(const ClusterFile& file, const std::vector<PlannedProcess>& processes) {
  Scripts scripts;
  for (size_t host = 0; host < file.hosts.size(); ++host) {
    const auto names = NamesOf(On(processes, host, Part::kAll));
    if (names.empty()) continue;
    scripts.push_back({.host = host, .text = PrepareScript(file.hosts[host].folder, names)});
  }
  return scripts;
}

Scripts TakeScripts(const ClusterFile& file, const std::vector<PlannedProcess>& processes) {
  Scripts scripts;
  for (size_t host = 0; host < file.hosts.size(); ++host) {
    const auto all = On(processes, host, Part::kAll);
    if (all.empty()) continue;
    scripts.push_back({.host = host, .text = TakeScript(file.hosts[host].folder, all)});
  }
  return scripts;
}

Scripts StartScripts(const ClusterFile& file, const std::vector<PlannedProcess>& processes,
                     Part part) {
  Scripts scripts;
  for (size_t host = 0; host < file.hosts.size(); ++host) {
    const auto all = On(processes, host, part);
    if (all.empty()) continue;
    scripts.push_back({.host = host, .text = StartScript(file.hosts[host].folder, all)});
  }
  return scripts;
}

std::vector<RemoteHosts::Files> CertificatesFor(const ClusterFile& file,
                                                const std::vector<PlannedProcess>& processes) {
  std::vector<RemoteHosts::Files> all;
  if (file.insecure) return all;
  for (size_t host = 0; host < file.hosts.size(); ++host) {
    RemoteHosts::Files files = {.host = host, .paths = {}, .folder = "incoming/tls"};
    for (const IdentityRole role : RolesOn(processes, host)) {
      files.paths.push_back(CertificateFolder(file.tls, NameOf(role)));
    }
    if (!files.paths.empty()) all.push_back(std::move(files));
  }
  return all;
}

std::vector<RemoteHosts::Files> ProgramsFor(const ClusterFile& file,
                                            const std::set<size_t>& hosts) {
  std::vector<RemoteHosts::Files> all;
  if (file.copy.empty()) return all;
  for (const size_t host : hosts) {
    all.push_back({.host = host, .paths = file.copy, .folder = "incoming/bin"});
  }
  return all;
}

// One run of the command.
class Start {
 public:
  explicit Start(const ClusterFile& file)
      : file_(file), processes_(PlanProcesses(file)), hosts_(file), watch_(file, hosts_) {}

  absl::Status Run() {
    COVEY_RETURN_IF_ERROR(Prepare());
    COVEY_RETURN_IF_ERROR(LeaveOutFinished());
    COVEY_RETURN_IF_ERROR(Copy());
    COVEY_RETURN_IF_ERROR(StartPart(Part::kSchedulers));
    COVEY_RETURN_IF_ERROR(watch_.AwaitScheduler(Select(Part::kSchedulers)));
    COVEY_RETURN_IF_ERROR(StartPart(Part::kMembers));
    COVEY_RETURN_IF_ERROR(watch_.AwaitMembers(processes_));
    const std::string tls =
        file_.insecure ? "" : absl::StrCat(" --tls ", CertificateFolder(file_.tls, "viewer"));
    Say(absl::StrCat("job ", file_.job, " is up: ", file_.scheduler.hosts.size(),
                     file_.scheduler.hosts.size() == 1 ? " scheduler, " : " schedulers, ",
                     file_.servers_count(), " servers, ", file_.workers_count(),
                     " workers; see: covey status --scheduler ", SchedulerAddresses(file_), tls));
    return absl::OkStatus();
  }

 private:
  static void Say(const std::string& line) { WriteAll(STDOUT_FILENO, absl::StrCat(line, "\n")); }

  std::vector<PlannedProcess> Select(Part part) const {
    std::vector<PlannedProcess> selected;
    for (const PlannedProcess& each : processes_) {
      if (IsIn(part, each)) selected.push_back(each);
    }
    return selected;
  }

  absl::Status Prepare() {
    COVEY_ASSIGN_OR_RETURN(const auto answers,
                           hosts_.Run(PrepareScripts(file_, processes_), kScriptDeadline));
    COVEY_RETURN_IF_ERROR(FailureOf(answers));
    for (const auto& answer : answers) {
      for (const auto& [name, report] : answer.report.processes) {
        if (report.IsAlive()) running_.insert(name);
      }
    }
    return absl::OkStatus();
  }

  // A worker that has trained to the end is not to begin again.
  absl::Status LeaveOutFinished() {
    if (running_.empty()) return absl::OkStatus();
    const std::set<std::string> finished = watch_.Finished();
    std::erase_if(processes_, [&](const PlannedProcess& process) {
      const bool is_over = process.role == IdentityRole::kWorker &&
                           finished.contains(process.name) && !running_.contains(process.name);
      if (is_over) {
        Say(absl::StrCat(process.name, " on ", file_.hosts[process.host].name,
                         " has finished; covey cluster down and up begin again"));
      }
      return is_over;
    });
    return absl::OkStatus();
  }

  absl::Status Copy() {
    COVEY_ASSIGN_OR_RETURN(const auto copied, hosts_.Copy(CertificatesFor(file_, processes_)));
    COVEY_RETURN_IF_ERROR(FailureOf(copied));
    std::set<size_t> hosts;
    for (const PlannedProcess& each : processes_) {
      if (!running_.contains(each.name)) hosts.insert(each.host);
    }
    COVEY_ASSIGN_OR_RETURN(const auto programs, hosts_.Copy(ProgramsFor(file_, hosts)));
    COVEY_RETURN_IF_ERROR(FailureOf(programs));
    COVEY_ASSIGN_OR_RETURN(const auto answers,
                           hosts_.Run(TakeScripts(file_, processes_), kScriptDeadline));
    COVEY_RETURN_IF_ERROR(FailureOf(answers));
    for (const auto& answer : answers) {
      for (const auto& [name, report] : answer.report.processes) {
        if (report.state == ProcessReport::State::kAbsent) return Absent(name);
      }
    }
    return absl::OkStatus();
  }

  absl::Status Absent(const std::string& name) const {
    const auto process = std::find_if(processes_.begin(), processes_.end(),
                                      [&](const auto& each) { return each.name == name; });
    return absl::FailedPreconditionError(absl::StrCat(
        process->at, ": host ", file_.hosts[process->host].name, " has no program ",
        process->program, " for ", name, "; install it there, or list its file in `copy`"));
  }

  absl::Status StartPart(Part part) {
    COVEY_ASSIGN_OR_RETURN(const auto answers,
                           hosts_.Run(StartScripts(file_, processes_, part), kScriptDeadline));
    for (const auto& answer : answers) {
      for (const auto& [name, report] : answer.report.processes) {
        Say(absl::StrCat(name, " on ", file_.hosts[answer.host].name, Verb(report.state)));
      }
    }
    return FailureOf(answers);
  }

  std::string Verb(ProcessReport::State state) const {
    switch (state) {
      case ProcessReport::State::kStarted:
        return " started";
      case ProcessReport::State::kDiffers:
        return absl::StrCat(" runs already, with other settings than ", file_.path,
                            " has now; covey cluster down and up change them");
      default:
        return " runs already";
    }
  }

  const ClusterFile& file_;
  std::vector<PlannedProcess> processes_;
  RemoteHosts hosts_;
  StartWatch watch_;
  std::set<std::string> running_;
};

void AddLines(absl::string_view head, const std::vector<std::vector<std::string>>& lines,
              std::string& text) {
  absl::StrAppend(&text, "# ", head, "\n");
  for (const std::vector<std::string>& line : lines) absl::StrAppend(&text, ShellLine(line), "\n");
}

}  // namespace

absl::Status StartCluster(const ClusterFile& file) {
  // Before anything reads them.
  if (!file.insecure) {
    COVEY_RETURN_IF_ERROR(PrepareCertificates(file.tls, file.job, WallClockNow()));
  }
  return Start(file).Run();
}

std::string DryRunText(const ClusterFile& file) {
  const std::vector<PlannedProcess> processes = PlanProcesses(file);
  const SshCommands commands(file, "");
  const auto all_of = [&](const Scripts& scripts) {
    std::vector<std::vector<std::string>> lines;
    for (const auto& script : scripts) lines.push_back(commands.Run(script.host, script.text));
    return lines;
  };
  std::vector<std::vector<std::string>> copies;
  std::set<size_t> hosts;
  for (const PlannedProcess& each : processes) hosts.insert(each.host);
  for (const auto& files : {CertificatesFor(file, processes), ProgramsFor(file, hosts)}) {
    for (const auto& each : files) {
      copies.push_back(commands.Copy(each.host, each.paths,
                                     absl::StrCat(file.hosts[each.host].folder, "/", each.folder)));
    }
  }
  std::string text = "# processes\n";
  for (const PlannedProcess& each : processes) {
    absl::StrAppend(&text, "# ", each.name, " on ", file.hosts[each.host].name, ": ",
                    ShellLine(each.command), "\n");
  }
  AddLines("folders", all_of(PrepareScripts(file, processes)), text);
  AddLines("copies", copies, text);
  AddLines("checks", all_of(TakeScripts(file, processes)), text);
  AddLines("scheduler", all_of(StartScripts(file, processes, Part::kSchedulers)), text);
  AddLines("servers and workers", all_of(StartScripts(file, processes, Part::kMembers)), text);
  return text;
}

}  // namespace covey::cli
