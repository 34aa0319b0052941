// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/console/text_file.h"
#include "client/cli/process/child_output.h"
#include "client/cli/process/child_process.h"
#include "client/cli/run/plan/launch_plan.h"
#include "client/cli/run/plan/run_options.h"
#include "client/cli/run/run_supervisor.h"

namespace covey::cli {

// One process of a run, running or ended.
struct RunProcess {
  RunSupervisor::Role role;
  uint32_t rank;
  absl::Time started;
  std::unique_ptr<ChildProcess> process;
  std::unique_ptr<ChildOutput> output;
  // When the scheduler was seen to have declared it dead.
  absl::Time declared_dead = absl::InfiniteFuture();

  const std::string& name() const { return process->name(); }
  bool running() const { return process->running(); }
  // As the cluster's view names the process.
  uint64_t process_id() const { return static_cast<uint64_t>(process->pid()); }
};

// The processes of a local run: starts them, knows where the scheduler listens, and reads their
// output. A process keeps its number, 0, 1, … in the order of starts, after it has ended; another
// process of the same name has another number.
//
// Confined to one thread. On destruction every process is killed and the temporary folder deleted.
class RunProcesses {
 public:
  using Role = RunSupervisor::Role;
  using Stream = ChildProcess::Stream;
  using TakeLine =
      std::function<void(const RunProcess& from, Stream stream, absl::string_view line)>;

  RunProcesses(const RunOptions& options, LocalPaths paths, TakeLine take_line)
      : options_(options), paths_(std::move(paths)), take_line_(std::move(take_line)) {}

  // Makes the folder of the logs, and a temporary one for what the processes share.
  absl::Status MakeFolders();
  // The number of the process. Errors as ChildProcess::Start and LogFile::Open. Servers and workers
  // only after FindScheduler.
  absl::StatusOr<size_t> Start(Role role, uint32_t rank);
  // Whether the first scheduler listens; then `address` says where, and a scheduler that is started
  // later listens there too. INTERNAL: it wrote no port.
  absl::StatusOr<bool> FindScheduler();
  const std::string& scheduler_binary() const { return paths_.scheduler_binary; }
  // "127.0.0.1:PORT".
  const std::string& address() const { return address_; }

  // "worker-3".
  std::string NameOf(Role role, uint32_t rank) const { return ProgramOf(role, rank).name; }
  uint32_t GroupOf(const RunProcess& process) const;

  RunProcess& operator[](size_t number) { return processes_[number]; }
  std::vector<RunProcess>& all() { return processes_; }
  // The running process of this name; null = none.
  RunProcess* FindRunning(absl::string_view name);

  // Adds the streams of all processes.
  void AddTo(std::vector<pollfd>& polled) const;
  // Reads those that have something to read. `polled`: what AddTo added, since which no process was
  // started.
  void Read(std::span<const pollfd> polled);

 private:
  Program ProgramOf(Role role, uint32_t rank) const;

  const RunOptions& options_;
  LocalPaths paths_;
  const TakeLine take_line_;
  std::string address_;
  std::unique_ptr<TemporaryFolder> folder_;
  std::vector<RunProcess> processes_;
};

}  // namespace covey::cli
