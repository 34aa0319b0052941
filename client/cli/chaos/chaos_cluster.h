// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/chaos/forwarder.h"
#include "client/cli/console/text_file.h"
#include "client/cli/process/child_process.h"
#include "client/cli/run/plan/launch_plan.h"
#include "client/cli/run/plan/run_options.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// A cluster on this machine for fault injection by `covey chaos`: its processes are not supervised.
// The destructor kills the remaining ones.
//
// Confined to one thread; calls block. Of the processes' output only the last lines are kept.
class ChaosCluster {
 public:
  static constexpr char kNetwork[] = "network";

  // Starts a scheduler, options.servers and, with a program, options.workers(). The server named
  // `detoured`, if any, and its peers reach each other through a process named kNetwork; while that
  // process is stopped, the server is cut off. Such a server has one data loop. UNAVAILABLE: a
  // process ended at once, or the scheduler did not listen in time.
  static absl::StatusOr<std::unique_ptr<ChaosCluster>> Start(const RunOptions& options,
                                                             const LocalPaths& binaries,
                                                             std::string detoured = "");

  // "127.0.0.1:1234".
  const std::string& address() const { return address_; }
  // Sends a signal to the process of this name.
  void Signal(absl::string_view name, int signal);
  // Restarts a process that has ended.
  absl::Status StartAgain(absl::string_view name);
  bool IsRunning(absl::string_view name);
  absl::StatusOr<proto::StatusReply> GetStatus() { return scheduler_->GetStatus(); }
  // Lets `time` pass. CANCELLED: this process was asked to end.
  static absl::Status Pause(absl::Duration time);
  // Reads the processes' output, so that none of them blocks on a full pipe. Call it often.
  void Pump();
  // The last line of the process's output, for humans.
  const std::string& last_line(absl::string_view name) { return last_lines_[std::string(name)]; }

 private:
  ChaosCluster(const RunOptions& options, LocalPaths paths, std::string detoured)
      : options_(options), paths_(std::move(paths)), detoured_(std::move(detoured)) {}
  absl::Status StartAll();
  absl::Status AwaitPort();
  absl::Status StartNetwork();
  Program Detoured(uint32_t rank) const;
  absl::StatusOr<Program> ProgramOf(absl::string_view name) const;

  const RunOptions options_;
  LocalPaths paths_;
  const std::string detoured_;
  // The port of the detoured server; the network's ports toward the scheduler and toward that
  // server.
  std::optional<ReservedPort> server_port_;
  uint32_t way_to_scheduler_ = 0;
  uint32_t way_to_server_ = 0;
  std::unique_ptr<TemporaryFolder> folder_;
  std::string address_;
  std::unique_ptr<SchedulerStub> scheduler_;
  std::map<std::string, std::unique_ptr<ChildProcess>> processes_;  // by name
  std::map<std::string, std::string> last_lines_;
};

}  // namespace covey::cli
