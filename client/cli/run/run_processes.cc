// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/run_processes.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

constexpr RunProcesses::Stream kStreams[] = {RunProcesses::Stream::kOutput,
                                             RunProcesses::Stream::kError};

}  // namespace

absl::Status RunProcesses::MakeFolders() {
  if (!options_.log_folder.empty()) COVEY_RETURN_IF_ERROR(MakeFolder(options_.log_folder));
  COVEY_ASSIGN_OR_RETURN(folder_, TemporaryFolder::Make());
  paths_.port_file = absl::StrCat(folder_->path(), "/port");
  paths_.scheduler_log = absl::StrCat(folder_->path(), "/decisions");
  return absl::OkStatus();
}

Program RunProcesses::ProgramOf(Role role, uint32_t rank) const {
  switch (role) {
    case Role::kScheduler:
      return SchedulerProgram(options_, paths_);
    case Role::kServer:
      return ServerProgram(options_, paths_, address_, rank);
    case Role::kWorker:
      return WorkerProgram(options_, address_, rank);
  }
  return {};
}

uint32_t RunProcesses::GroupOf(const RunProcess& process) const {
  return process.role == Role::kWorker ? process.rank / options_.workers_per_group : 0;
}

absl::StatusOr<size_t> RunProcesses::Start(Role role, uint32_t rank) {
  const Program program = ProgramOf(role, rank);
  std::unique_ptr<LogFile> log;
  if (!options_.log_folder.empty()) {
    const std::string path = absl::StrCat(options_.log_folder, "/", program.name, ".log");
    // The output of the previous process says why it ended.
    const bool is_again =
        std::any_of(processes_.begin(), processes_.end(),
                    [&program](const RunProcess& other) { return other.name() == program.name; });
    COVEY_ASSIGN_OR_RETURN(log, LogFile::Open(path, is_again ? LogFile::Existing::kKept
                                                             : LogFile::Existing::kEmptied));
  }
  COVEY_ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> process, ChildProcess::Start(program));
  const size_t number = processes_.size();
  auto output = std::make_unique<ChildOutput>(
      *process, std::move(log), [this, number](Stream stream, absl::string_view line) {
        take_line_(processes_[number], stream, line);
      });
  processes_.push_back({.role = role,
                        .rank = rank,
                        .started = MonotonicNow(),
                        .process = std::move(process),
                        .output = std::move(output)});
  return number;
}

absl::StatusOr<bool> RunProcesses::FindScheduler() {
  const absl::StatusOr<std::string> text = ReadTextFile(paths_.port_file);
  if (!text.ok()) return false;
  const absl::string_view port = absl::StripAsciiWhitespace(*text);
  if (port.empty()) return false;
  address_ = absl::StrCat("127.0.0.1:", port);
  // A restarted scheduler must listen at the same port.
  if (!absl::SimpleAtoi(port, &paths_.port)) {
    return absl::InternalError(absl::StrCat("the scheduler's port is '", port, "'"));
  }
  return true;
}

RunProcess* RunProcesses::FindRunning(absl::string_view name) {
  for (RunProcess& process : processes_) {
    if (process.running() && process.name() == name) return &process;
  }
  return nullptr;
}

void RunProcesses::AddTo(std::vector<pollfd>& polled) const {
  for (const RunProcess& process : processes_) {
    for (const Stream stream : kStreams) {
      polled.push_back({.fd = process.process->descriptor(stream), .events = POLLIN, .revents = 0});
    }
  }
}

void RunProcesses::Read(std::span<const pollfd> polled) {
  for (size_t i = 0; i < polled.size(); ++i) {
    if (polled[i].revents != 0) {
      processes_[i / std::size(kStreams)].output->Read(kStreams[i % std::size(kStreams)]);
    }
  }
}

}  // namespace covey::cli
