// SPDX-License-Identifier: Apache-2.0
#include "client/cli/doctor/doctor_command.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/doctor/cluster_checks.h"
#include "client/cli/doctor/findings_view.h"
#include "client/cli/doctor/machine_checks.h"
#include "client/cli/doctor/machine_facts.h"
#include "client/cli/doctor/port_probe.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "common/net/scheduler_failover.h"
#include "common/security/wall_clock.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kPortDeadline = absl::Seconds(2);
// A scheduler without TLS greets at once.
constexpr absl::Duration kGreetingDeadline = absl::Milliseconds(500);

std::vector<ClusterFacts::Port> Probe(std::vector<ClusterFacts::Port> ports,
                                      absl::Duration greeting) {
  std::vector<std::string> endpoints;
  for (const ClusterFacts::Port& port : ports) endpoints.push_back(port.endpoint);
  const std::vector<PortAnswer> answers = ProbePorts(endpoints, kPortDeadline, greeting);
  for (size_t i = 0; i < ports.size(); ++i) ports[i].answer = answers[i];
  return ports;
}

std::vector<ClusterFacts::Port> DataPorts(const proto::ClusterView& view) {
  std::vector<ClusterFacts::Port> ports;
  for (const proto::Node& node : view.nodes()) {
    if (node.state() != proto::Node::ALIVE) continue;
    for (const std::string& endpoint : node.endpoints()) {
      if (endpoint.empty()) continue;
      ports.push_back({.owner = node.name(), .endpoint = endpoint, .answer = {}});
    }
  }
  return ports;
}

ClusterFacts ReadClusterFacts(const SchedulerOptions& asked, const std::string& job,
                              bool has_credentials) {
  ClusterFacts facts{.tls = asked.tls,
                     .was_asked = has_credentials,
                     .status = absl::UnavailableError("not asked"),
                     .job = job};
  if (!has_credentials) return facts;
  for (const std::string& address : SplitSchedulers(asked.scheduler)) {
    facts.schedulers.push_back({.owner = address, .endpoint = address, .answer = {}});
  }
  facts.schedulers = Probe(std::move(facts.schedulers), kGreetingDeadline);
  facts.status = SchedulerStub(asked.target()).GetStatus();
  if (facts.status.ok()) {
    facts.nodes = Probe(DataPorts(facts.status->view()), absl::ZeroDuration());
  }
  return facts;
}

}  // namespace

int DoctorCommand(int count, const char* const* arguments) {
  SchedulerOptions asked;
  std::string job;
  MachineQuestion question;
  MachineNeeds needs;
  ConfigFile options(
      "covey doctor",
      "Checks this machine, and with --scheduler a cluster as it is seen from here. A line for "
      "each check: ok, warn or fail, what was seen, and one thing to do. It connects to the data "
      "port of every node, and sends nothing there. Exit code: 0 nothing failed, 1 a check "
      "failed.");
  asked.AddTo(options);
  options.Add("job", &job, "the job that the scheduler is to lead; empty = any");
  options.Add("certificates", &question.credentials,
              "DIR[,DIR] of other certificates on this machine, to be checked like --tls");
  options.Add("memory", ConfigFile::Bytes{&needs.memory_bytes}, "memory that is to be free");
  options.Add("disk", ConfigFile::Bytes{&needs.disk_bytes}, "bytes that are to be free in FOLDER");
  options.TakeRest(&question.folders, "FOLDER...   of logs and snapshots on this machine");
  if (const auto code = LoadWithShortOutput(options, count, arguments)) return *code;
  if (!asked.scheduler.empty()) {
    if (const absl::Status status = asked.Check(); !status.ok()) {
      PrintFailure(arguments[0], status);
      return kExitUsage;
    }
  }
  if (!asked.tls.empty()) question.credentials.insert(question.credentials.begin(), asked.tls);

  const MachineFacts machine = ReadMachineFacts(question, WallClockNow());
  Findings findings = CheckMachine(machine, needs);
  if (!asked.scheduler.empty()) {
    const bool has_credentials = asked.tls.empty() || machine.credentials[0].problems.empty();
    const Findings of_cluster = CheckCluster(ReadClusterFacts(asked, job, has_credentials));
    findings.insert(findings.end(), of_cluster.begin(), of_cluster.end());
  }
  WriteAll(STDOUT_FILENO, asked.json ? FindingsJson(findings) : FindingsText(findings));
  return HasFailure(findings) ? kExitFailed : kExitOk;
}

}  // namespace covey::cli
