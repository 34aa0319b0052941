#include "worker/examples/worker_program.h"

#include <ostream>

namespace covey {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitUnreachable = 3;

}  // namespace

int RunWorkerProgram(const WorkerProgram& program, int argc, const char* const* argv,
                     std::ostream& errors) {
  const auto fail = [&program, &errors](const absl::Status& status, int exit_code) {
    errors << program.name << ": " << status.message() << "\n";
    return exit_code;
  };
  worker::WorkerConfig config;
  ConfigFile file(program.name, program.description);
  program.add_options(file);
  config.AddTo(file);
  if (const auto code = file.LoadForMain(argc, argv)) return *code;
  for (const absl::Status& status : {program.validate(), config.Validate()}) {
    if (!status.ok()) return fail(status, kExitUsage);
  }
  const auto worker = worker::Worker::Join(config);
  if (!worker.ok()) {
    return fail(worker.status(),
                absl::IsUnavailable(worker.status()) ? kExitUnreachable : kExitFailed);
  }
  const absl::Status status = program.run(config, **worker);
  return status.ok() ? 0 : fail(status, kExitFailed);
}

}  // namespace covey
