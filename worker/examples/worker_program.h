// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/runtime/config_file.h"
#include "worker/config.h"
#include "worker/worker.h"

namespace covey {

// The parts in which examples differ; the rest of their main functions is RunWorkerProgram.
struct WorkerProgram {
  // "synthetic": the prefix of errors, and the name in --help.
  std::string name;
  std::string description;
  // Adds the program's own options to those of a worker.
  std::function<void(ConfigFile&)> add_options;
  std::function<absl::Status()> validate;
  // Runs the program as a member of its group.
  std::function<absl::Status(const worker::WorkerConfig&, worker::Worker&)> run;
};

// Drains a worker when its process is told to end. The first SIGTERM or Ctrl-C asks the scheduler
// to drain it, and the hybrid step ends with CANCELLED at the group's next step. A worker that is
// not released within kDrainMax ends anyway. A second Ctrl-C ends the process.
//
// Confined to the worker's thread; the worker outlives it.
class DrainOnSignal {
 public:
  static constexpr absl::Duration kDrainMax = absl::Seconds(4);

  explicit DrainOnSignal(worker::Worker& worker) : worker_(worker) {}

  // Lets `time` pass; call it between steps. ABORTED: told to end, and not released in time.
  absl::Status Pause(absl::Duration time);

 private:
  worker::Worker& worker_;
  int signal_ = 0;
  absl::Time give_up_ = absl::InfiniteFuture();
};

// Reads options, joins the cluster, runs. Returns the exit code: 0 done, or drained (a run that
// ends with CANCELLED); 1 failed, 2 usage, 3 no scheduler at the address. Messages go to `errors`,
// in one line. Blocks.
int RunWorkerProgram(const WorkerProgram& program, int argc, const char* const* argv,
                     std::ostream& errors);

}  // namespace covey
