#pragma once

#include <functional>
#include <iosfwd>
#include <string>

#include "absl/status/status.h"
#include "common/runtime/config_file.h"
#include "worker/config.h"
#include "worker/group.h"

namespace covey {

// What tells one example from another; the rest of their main functions is RunWorkerProgram.
struct WorkerProgram {
  // "synthetic": in front of errors, and in --help.
  std::string name;
  std::string description;
  // The program's own options, beside those of a worker.
  std::function<void(ConfigFile&)> add_options;
  std::function<absl::Status()> validate;
  // Runs as a member of its group.
  std::function<absl::Status(const worker::WorkerConfig&, worker::Worker&)> run;
};

// Reads options, joins the cluster, runs. The exit code: 0 done, 1 failed, 2 usage, 3 no scheduler
// there; the error goes to `errors` in one line. Blocks.
int RunWorkerProgram(const WorkerProgram& program, int argc, const char* const* argv,
                     std::ostream& errors);

}  // namespace covey
