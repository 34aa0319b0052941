// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/process_faults.h"

#include <signal.h>

#include "absl/strings/str_cat.h"

namespace covey::cli {

void Kill(absl::string_view name, absl::string_view why, RunProcesses& processes,
          RunDisplay& display) {
  const RunProcess* process = processes.FindRunning(name);
  if (process == nullptr) return;
  display.Say(absl::StrCat("killing ", name, ": ", why));
  process->process->Signal(SIGKILL);
}

void ProcessFaults::Inject(absl::Time now, absl::Duration elapsed) {
  if (!since_.has_value()) return;
  for (const FaultSchedule::Action& action : schedule_.Due(now - *since_)) {
    if (action.fault.kind == FaultKind::kStop) {
      StopOrContinue(action, elapsed);
    } else {
      KillOrRestart(action, now);
    }
  }
}

void ProcessFaults::StopOrContinue(const FaultSchedule::Action& action, absl::Duration elapsed) {
  const std::string& target = action.fault.target;
  const RunProcess* process = processes_.FindRunning(target);
  if (process == nullptr) return;
  const absl::string_view what = action.begins ? "stopped" : "resumed";
  display_.Say(absl::StrCat(target, " ", what, ", as planned"));
  incidents_.Note(absl::ToDoubleSeconds(elapsed), target, absl::StrCat(what, ", as planned"));
  process->process->Signal(action.begins ? SIGSTOP : SIGCONT);
}

void ProcessFaults::KillOrRestart(const FaultSchedule::Action& action, absl::Time now) {
  const Fault& fault = action.fault;
  const bool is_restart = fault.kind == FaultKind::kRestart;
  const bool comes_back = is_restart || fault.duration != absl::InfiniteDuration();
  if (action.begins) {
    if (comes_back && processes_.FindRunning(fault.target) != nullptr) {
      restarts_.Plan(fault.target,
                     is_restart ? Restarts::Planned::kAtOnce : Restarts::Planned::kLater);
    }
    Kill(fault.target, comes_back ? "as planned, it will be restarted" : "as planned", processes_,
         display_);
    return;
  }
  for (const RunProcess& process : processes_.all()) {
    if (process.name() != fault.target) continue;
    restarts_.Add({.at = now, .role = process.role, .rank = process.rank});
    break;
  }
}

absl::Time ProcessFaults::NextAt() const {
  return since_.has_value() ? *since_ + schedule_.NextAt() : absl::InfiniteFuture();
}

}  // namespace covey::cli
