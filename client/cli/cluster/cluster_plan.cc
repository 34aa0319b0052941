// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/cluster_plan.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/grouping/group_count.h"
#include "common/net/host_port.h"
#include "common/runtime/exposure.h"

namespace covey::cli {
namespace {

std::string ProgramOf(const ClusterFile& file, absl::string_view name) {
  return file.programs.empty() ? std::string(name) : absl::StrCat(file.programs, "/", name);
}

// The place of a host, with its own name where the user gives zone and rack alone.
std::string LabelsOf(const ClusterFile::Host& host) {
  if (host.labels.empty() || std::count(host.labels.begin(), host.labels.end(), '/') != 1) {
    return host.labels;
  }
  return absl::StrCat(host.labels, "/", host.name);
}

// Processes that are planned one after the other.
class Planner {
 public:
  explicit Planner(const ClusterFile& file) : file_(file) {}

  std::vector<PlannedProcess> Take() { return std::move(planned_); }

  void AddSchedulers() {
    for (const size_t host : file_.scheduler.hosts) {
      std::vector<std::string> command = {ProgramOf(file_, "covey_scheduler")};
      AddFlag("job", file_.job, command);
      AddFlag("host", file_.hosts[host].address, command);
      AddFlag("port", absl::StrCat(file_.scheduler_port), command);
      AddFlag("servers", absl::StrCat(file_.servers_count()), command);
      if (const uint32_t workers = file_.workers_count(); workers > 0) {
        AddFlag("groups", GroupCountText(file_.groups, file_.plans_groups), command);
        AddFlag("workers", absl::StrCat(workers / file_.groups), command);
      }
      AddSecurity("scheduler", command);
      Add(IdentityRole::kScheduler, host, file_.scheduler, command);
    }
  }

  void AddServers(const ClusterFile::Processes& servers) {
    for (const size_t host : servers.hosts) {
      for (uint32_t i = 0; i < servers.count; ++i) {
        std::vector<std::string> command = {ProgramOf(file_, "covey_server")};
        AddFlag("job", file_.job, command);
        AddFlag("scheduler", SchedulerAddresses(file_), command);
        AddFlag("rank", absl::StrCat(ranks_[IdentityRole::kServer]), command);
        AddFlag("data-host", file_.hosts[host].address, command);
        if (const std::string labels = LabelsOf(file_.hosts[host]); !labels.empty()) {
          AddFlag("labels", labels, command);
        }
        AddSecurity("server", command);
        Add(IdentityRole::kServer, host, servers, command);
      }
    }
  }

  void AddWorkers(const ClusterFile::Processes& workers) {
    for (const size_t host : workers.hosts) {
      for (uint32_t i = 0; i < workers.count; ++i) {
        std::map<std::string, std::string> environment = workers.environment;
        environment["COVEY_JOB"] = file_.job;
        environment["COVEY_SCHEDULER"] = SchedulerAddresses(file_);
        environment["COVEY_RANK"] = absl::StrCat(ranks_[IdentityRole::kWorker]);
        environment["COVEY_DATA_HOST"] = file_.hosts[host].address;
        if (const std::string labels = LabelsOf(file_.hosts[host]); !labels.empty()) {
          environment["COVEY_LABELS"] = labels;
        }
        if (file_.insecure) environment["COVEY_INSECURE"] = "true";
        if (!file_.insecure) environment["COVEY_TLS"] = "tls/worker";
        std::vector<std::string> command = {"env"};
        for (const auto& [name, value] : environment) {
          command.push_back(absl::StrCat(name, "=", value));
        }
        command.push_back(workers.program);
        Add(IdentityRole::kWorker, host, workers, command);
      }
    }
  }

 private:
  static void AddFlag(absl::string_view name, absl::string_view value,
                      std::vector<std::string>& command) {
    command.push_back(absl::StrCat("--", name, "=", value));
  }

  // Processes run in the folder of the job.
  void AddSecurity(absl::string_view role, std::vector<std::string>& command) const {
    if (file_.insecure) {
      command.push_back("--insecure");
    } else {
      AddFlag("tls", absl::StrCat("tls/", role), command);
    }
  }

  void Add(IdentityRole role, size_t host, const ClusterFile::Processes& of,
           std::vector<std::string> command) {
    const std::string program = role == IdentityRole::kWorker ? of.program : command.front();
    command.insert(command.end(), of.arguments.begin(), of.arguments.end());
    planned_.push_back({.name = absl::StrCat(NameOf(role), "-", ranks_[role]++),
                        .role = role,
                        .host = host,
                        .program = program,
                        .command = std::move(command),
                        .at = of.at});
  }

  const ClusterFile& file_;
  std::vector<PlannedProcess> planned_;
  std::map<IdentityRole, uint32_t> ranks_;
};

// Of IPv4, where the name has both.
std::string LookUp(const std::string& name) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(name.c_str(), nullptr, &hints, &found) != 0) return "";
  const addrinfo* best = found;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family == AF_INET) {
      best = each;
      break;
    }
  }
  char text[NI_MAXHOST] = "";
  getnameinfo(best->ai_addr, best->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  freeaddrinfo(found);
  return text;
}

}  // namespace

std::vector<PlannedProcess> PlanProcesses(const ClusterFile& file) {
  for (const ClusterFile::Host& host : file.hosts) COVEY_CHECK(!host.address.empty());
  Planner planner(file);
  planner.AddSchedulers();
  for (const ClusterFile::Processes& each : file.servers) planner.AddServers(each);
  for (const ClusterFile::Processes& each : file.workers) planner.AddWorkers(each);
  return planner.Take();
}

std::string SchedulerAddresses(const ClusterFile& file) {
  return absl::StrJoin(file.scheduler.hosts, ",", [&file](std::string* text, size_t host) {
    absl::StrAppend(text, HostPort(file.hosts[host].address, file.scheduler_port));
  });
}

std::vector<IdentityRole> RolesOn(const std::vector<PlannedProcess>& processes, size_t host) {
  std::vector<IdentityRole> roles;
  for (const PlannedProcess& each : processes) {
    const bool is_known = std::find(roles.begin(), roles.end(), each.role) != roles.end();
    if (each.host == host && !is_known) roles.push_back(each.role);
  }
  return roles;
}

absl::Status CheckAddresses(const ClusterFile& file) {
  const auto is_local = [](const ClusterFile::Host& host) { return IsLoopback(host.address); };
  const auto local = std::find_if(file.hosts.begin(), file.hosts.end(), is_local);
  if (local == file.hosts.end() || std::all_of(file.hosts.begin(), file.hosts.end(), is_local)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(local->at, ": host ", local->name, " has the address ", local->address,
                   ", which other hosts do not reach; list it in `hosts` with address: IP"));
}

absl::Status ResolveAddresses(ClusterFile* file) {
  for (ClusterFile::Host& host : file->hosts) {
    if (host.address.empty()) host.address = LookUp(host.name);
    if (host.address.empty()) {
      return absl::NotFoundError(
          absl::StrCat(host.at, ": host ", host.name,
                       " has no address that this machine knows; list it in `hosts` with "
                       "address: IP"));
    }
  }
  return CheckAddresses(*file);
}

}  // namespace covey::cli
