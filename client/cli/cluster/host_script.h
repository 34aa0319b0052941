// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/cluster/cluster_plan.h"

namespace covey::cli {

// What runs on a host, as scripts for its /bin/sh; every value in them is a ShellWord. In the
// folder of the job a host has
//
//   bin/          programs that were copied
//   tls/ROLE/     certificate and key of each role that runs there
//   log/NAME.log  output of a process; NAME.log.1 that of the one before
//   run/NAME.pid  process id, start time in clock ticks since boot, id of the boot: a process that
//                 has another start time than the file says is a stranger, and gets no signal
//   run/NAME.command
//   incoming/     what is being copied
//
// Scripts say what they found in lines "covey NAME STATE", which ReadHostReport reads. Pure.

// Makes the folders, and says what runs.
std::string PrepareScript(const std::string& folder, const std::vector<std::string>& names);
// Takes over what was copied, and says which programs are absent then.
std::string TakeScript(const std::string& folder, const std::vector<PlannedProcess>& processes);
// Starts what does not run, each as the leader of a session of its own, so that it outlives the
// connection.
std::string StartScript(const std::string& folder, const std::vector<PlannedProcess>& processes);
// Says what runs, and shows the last lines of logs.
std::string StateScript(const std::string& folder, const std::vector<std::string>& names,
                        uint32_t log_lines);

enum class StopSignal { kTerminate, kKill };
struct StopOrder {
  StopSignal signal = StopSignal::kTerminate;
  // Until the processes have ended.
  absl::Duration wait;
};
// Signals processes and their groups, all at once, and says which of them have ended. A process
// that was asked to end before is only waited for.
std::string StopScript(const std::string& folder, const std::vector<std::string>& names,
                       const StopOrder& order);

struct LogsOrder {
  uint32_t lines = 20;
  bool is_followed = false;
};
// Prints the ends of logs, each below a head (LogHead).
std::string LogsScript(const std::string& folder, const std::vector<std::string>& names,
                       const LogsOrder& order);
// The name in a line that `tail` prints above the log of NAME; empty: it is no such line.
absl::string_view LogHead(absl::string_view line);

// What a host says of one process.
struct ProcessReport {
  enum class State {
    // There is no trace of it.
    kNone,
    kRunning,
    // Runs, but was started by another command line than the file gives now.
    kDiffers,
    kStarted,
    kEnded,
    // Its program is not there.
    kAbsent,
  };
  State state = State::kNone;
  // 0 = unknown.
  int64_t process_id = 0;
  std::vector<std::string> last_lines;

  bool IsAlive() const {
    return state == State::kRunning || state == State::kDiffers || state == State::kStarted;
  }
};
struct HostReport {
  std::map<std::string, ProcessReport> processes;
  // Why the host did nothing; empty = it did.
  std::string refusal;
};
// Skips other lines, as the startup files of a shell print.
HostReport ReadHostReport(absl::string_view output);

}  // namespace covey::cli
