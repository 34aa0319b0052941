// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/chaos_cluster.h"

#include <signal.h>

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/run/plan/binaries.h"
#include "common/base/status_macros.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kStartMax = absl::Seconds(20);
constexpr absl::Duration kStartPoll = absl::Milliseconds(20);

}  // namespace

absl::StatusOr<std::unique_ptr<ChaosCluster>> ChaosCluster::Start(const RunOptions& options,
                                                                  const LocalPaths& binaries,
                                                                  std::string detoured) {
  auto cluster =
      std::unique_ptr<ChaosCluster>(new ChaosCluster(options, binaries, std::move(detoured)));
  COVEY_RETURN_IF_ERROR(cluster->StartAll());
  return cluster;
}

absl::Status ChaosCluster::StartAll() {
  COVEY_ASSIGN_OR_RETURN(folder_, TemporaryFolder::Make());
  paths_.port_file = absl::StrCat(folder_->path(), "/port");
  paths_.scheduler_log = absl::StrCat(folder_->path(), "/decisions");
  COVEY_RETURN_IF_ERROR(StartAgain("scheduler"));
  COVEY_RETURN_IF_ERROR(AwaitPort());
  if (!detoured_.empty()) COVEY_RETURN_IF_ERROR(StartNetwork());
  for (uint32_t rank = 0; rank < options_.servers; ++rank) {
    COVEY_RETURN_IF_ERROR(StartAgain(absl::StrCat("server-", rank)));
  }
  for (uint32_t rank = 0; rank < options_.workers() && !options_.program.empty(); ++rank) {
    COVEY_RETURN_IF_ERROR(StartAgain(absl::StrCat("worker-", rank)));
  }
  scheduler_ = std::make_unique<SchedulerStub>(SchedulerTarget{.addresses = address_, .tls = ""});
  return absl::OkStatus();
}

absl::Status ChaosCluster::AwaitPort() {
  const absl::Time until = MonotonicNow() + kStartMax;
  while (MonotonicNow() < until) {
    Pump();
    const absl::StatusOr<std::string> text = ReadTextFile(paths_.port_file);
    // A restarted scheduler must listen at the same port.
    if (text.ok() && absl::SimpleAtoi(absl::StripAsciiWhitespace(*text), &paths_.port)) {
      address_ = absl::StrCat("127.0.0.1:", paths_.port);
      return absl::OkStatus();
    }
    if (!IsRunning("scheduler")) break;
    COVEY_RETURN_IF_ERROR(Pause(kStartPoll));
  }
  return absl::UnavailableError(absl::StrCat("the scheduler (", paths_.scheduler_binary,
                                             ") does not listen: ", last_line("scheduler")));
}

absl::Status ChaosCluster::StartNetwork() {
  COVEY_ASSIGN_OR_RETURN(server_port_, ReservedPort::Make());
  COVEY_ASSIGN_OR_RETURN(
      processes_[kNetwork],
      ChildProcess::Start({.name = kNetwork,
                           .arguments = {OwnPath(), "chaos", "forward", absl::StrCat(paths_.port),
                                         absl::StrCat(server_port_->port())},
                           .environment = {}}));
  const absl::Time until = MonotonicNow() + kStartMax;
  while (MonotonicNow() < until) {
    Pump();
    absl::string_view line = last_line(kNetwork);
    if (absl::ConsumePrefix(&line, "forwards from ")) {
      const std::vector<absl::string_view> ports = absl::StrSplit(line, ' ');
      if (ports.size() == 2 && absl::SimpleAtoi(ports[0], &way_to_scheduler_) &&
          absl::SimpleAtoi(ports[1], &way_to_server_)) {
        return absl::OkStatus();
      }
    }
    if (!IsRunning(kNetwork)) break;
    COVEY_RETURN_IF_ERROR(Pause(kStartPoll));
  }
  return absl::UnavailableError(
      absl::StrCat("the network's forwarder did not start: ", last_line(kNetwork)));
}

Program ChaosCluster::Detoured(uint32_t rank) const {
  Program program =
      ServerProgram(options_, paths_, absl::StrCat("127.0.0.1:", way_to_scheduler_), rank);
  for (const std::string& argument :
       {std::string("--data-port"), absl::StrCat(server_port_->port()),
        std::string("--advertise-data"), absl::StrCat("127.0.0.1:", way_to_server_)}) {
    program.arguments.push_back(argument);
  }
  return program;
}

absl::StatusOr<Program> ChaosCluster::ProgramOf(absl::string_view name) const {
  if (name == "scheduler") return SchedulerProgram(options_, paths_);
  uint32_t rank = 0;
  absl::string_view rest = name;
  if (absl::ConsumePrefix(&rest, "server-") && absl::SimpleAtoi(rest, &rank)) {
    return name == detoured_ ? Detoured(rank) : ServerProgram(options_, paths_, address_, rank);
  }
  rest = name;
  if (absl::ConsumePrefix(&rest, "worker-") && absl::SimpleAtoi(rest, &rank)) {
    return WorkerProgram(options_, address_, rank);
  }
  return absl::InvalidArgumentError(absl::StrCat("no process is named ", name));
}

absl::Status ChaosCluster::StartAgain(absl::string_view name) {
  COVEY_ASSIGN_OR_RETURN(const Program program, ProgramOf(name));
  COVEY_ASSIGN_OR_RETURN(processes_[std::string(name)], ChildProcess::Start(program));
  return absl::OkStatus();
}

void ChaosCluster::Signal(absl::string_view name, int signal) {
  const auto process = processes_.find(std::string(name));
  if (process != processes_.end()) process->second->Signal(signal);
}

bool ChaosCluster::IsRunning(absl::string_view name) {
  const auto process = processes_.find(std::string(name));
  return process != processes_.end() && !process->second->Reap().has_value();
}

absl::Status ChaosCluster::Pause(absl::Duration time) {
  if (!WaitForTermination(time).has_value()) return absl::OkStatus();
  return absl::CancelledError("interrupted; nothing is left running");
}

void ChaosCluster::Pump() {
  for (const auto& [name, process] : processes_) {
    for (const auto stream : {ChildProcess::Stream::kOutput, ChildProcess::Stream::kError}) {
      const std::string text = process->Read(stream);
      const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
      if (!lines.empty()) last_lines_[name] = std::string(lines.back());
    }
  }
}

}  // namespace covey::cli
