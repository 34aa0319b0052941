// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/console/terminal.h"
#include "client/cli/run/plan/run_options.h"
#include "client/cli/run/run_processes.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// Shows a run to people: the output of its processes, the progress of the groups, and messages of
// the launcher. Also collects the result that the workers print.
//
// Confined to one thread.
class RunDisplay {
 public:
  RunDisplay(const RunOptions& options, Terminal& terminal)
      : options_(options), terminal_(terminal) {}

  // Prints a message of the launcher.
  void Say(absl::string_view line);
  bool ShowsEverything() const { return options_.show == RunOptions::Show::kEverything; }

  // Handles a line that a process has printed. `is_over`: the work has been done well, so that the
  // output of the cluster's shutdown is of no interest.
  void TakeLine(const RunProcess& from, RunProcesses::Stream stream, absl::string_view line,
                bool is_over);
  void ShowProgress(absl::Time now, absl::Duration elapsed, const proto::StatusReply& status);
  void HideProgress() { terminal_.SetBlock({}); }
  // Prints the last lines of a process that has failed.
  void ShowLastLines(const RunProcess& process);
  // To be called before the launcher waits.
  void Redraw() { terminal_.Redraw(); }

  // The JSON object behind the last `result` that a worker printed; empty = none did.
  const std::string& result() const { return result_; }
  // What a worker last said of the time of its own steps (client/step_times.h), which is not shown:
  // the launcher says it for all workers. Empty = none did.
  const std::string& step_sentence() const { return step_sentence_; }

 private:
  void TakeResult(absl::string_view worker, absl::string_view text);

  const RunOptions& options_;
  Terminal& terminal_;
  absl::Time next_progress_line_ = absl::InfinitePast();
  std::string result_;
  std::string step_sentence_;
};

}  // namespace covey::cli
