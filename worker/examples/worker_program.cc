// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/worker_program.h"

#include <optional>
#include <ostream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/net/grpc_log.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/process_main.h"
#include "common/runtime/supervisor_notice.h"
#include "common/security/node_credentials.h"
#include "common/security/wall_clock.h"

namespace covey {
namespace {

constexpr int kExitOk = 0;
constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitUnreachable = 3;
// What the destructor of Worker takes at most: it makes pushes durable, and leaves.
constexpr absl::Duration kEndMax = absl::Seconds(15);

}  // namespace

absl::Status DrainOnSignal::Pause(absl::Duration time) {
  const std::optional<int> signal = WaitForTermination(time);
  if (signal.has_value() && signal_ == 0) {
    signal_ = *signal;
    give_up_ = MonotonicNow() + kDrainMax;
    NotifyStopping(kDrainMax + kEndMax);
    COVEY_RETURN_IF_ERROR(worker_.RequestDrain());
  }
  if (MonotonicNow() < give_up_) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("stopped by signal ", signal_,
                                         "; its group did not release it within ",
                                         absl::FormatDuration(kDrainMax)));
}

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
  TakeLogOfGrpc();
  if (const std::string& tls = config.cluster.tls; !tls.empty()) {
    const absl::Status status = LoadNodeCredentials(tls, WallClockNow()).status();
    if (!status.ok()) return fail(status, kExitUsage);
  }
  config.gives_up = [] { return WaitForTermination(absl::ZeroDuration()).has_value(); };
  const auto worker = worker::Worker::Join(config);
  if (absl::IsUnavailable(worker.status())) return fail(worker.status(), kExitUnreachable);
  if (absl::IsCancelled(worker.status())) return fail(worker.status(), kExitOk);
  if (!worker.ok()) return fail(worker.status(), kExitFailed);
  const absl::Status status = program.run(config, **worker);
  if (status.ok()) return kExitOk;
  if (absl::IsCancelled(status)) {
    errors << program.name << ": drained: " << status.message() << "\n";
    return kExitOk;
  }
  return fail(status, kExitFailed);
}

}  // namespace covey
