// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/run/plan/run_options.h"
#include "client/cli/run/restart_limit.h"
#include "client/cli/run/run_supervisor.h"

namespace covey::cli {

// Decides which processes of a run are restarted after they have ended, and when: those that a
// planned fault brings back, and those that RunOptions::on_failure asks for, within RestartLimit.
// Pure.
class Restarts {
 public:
  using Role = RunSupervisor::Role;
  // Delay before a process is restarted, and the shortest interval between restarts of one role.
  static constexpr absl::Duration kDelay = absl::Milliseconds(500);

  struct Restart {
    absl::Time at;
    Role role;
    uint32_t rank;
  };
  struct Ended {
    absl::string_view name;
    Role role;
    uint32_t rank;
    absl::Duration lived;
    bool is_ok;
  };
  // The state of the run on which a decision depends.
  struct Situation {
    // The run ends, or this process was told to.
    bool is_stopping = false;
    // Some worker has finished its training.
    bool training_ends = false;
    bool all_started = false;
    // The scheduler that is running, or has just ended, has answered.
    bool scheduler_answered = false;
  };
  enum class Verdict {
    kStaysAway,
    kComesBack,
    // It would come back, but has ended too often soon after its start.
    kEndsTooOften,
  };

  explicit Restarts(RunOptions::OnFailure on_failure) : on_failure_(on_failure) {}

  // How a planned fault brings a process back that it kills.
  enum class Planned {
    kAtOnce,  // as soon as it has ended
    kLater,   // when the fault ends: the caller then calls Add
  };
  void Plan(absl::string_view name, Planned planned) { planned_[std::string(name)] = planned; }

  // A process has ended. kComesBack: Add was done, or the planned fault will do it.
  Verdict OnEnd(const Ended& ended, const Situation& situation, absl::Time now);
  void Add(const Restart& restart) { pending_.push_back(restart); }
  void Clear() { pending_.clear(); }

  // Removes and returns the restarts that are due. Drops those of processes that run already.
  std::vector<Restart> TakeDue(absl::Time now, absl::FunctionRef<bool(const Restart&)> is_running);
  const std::vector<Restart>& pending() const { return pending_; }
  // InfiniteFuture() when none is pending.
  absl::Time next() const;

 private:
  const RunOptions::OnFailure on_failure_;
  // Processes that end because of a fault and come back, by name.
  std::map<std::string, Planned, std::less<>> planned_;
  std::vector<Restart> pending_;
  RestartLimit limit_;
};

}  // namespace covey::cli
