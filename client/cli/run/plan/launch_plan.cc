// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/plan/launch_plan.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace covey::cli {
namespace {

constexpr char kHost[] = "127.0.0.1";
constexpr char kSpin[] = "100us";

// The launcher shows their logs to a user; the launcher's own log file is not theirs.
std::map<std::string, std::string> CommonEnvironment() {
  return {{"COVEY_LOG_FORMAT", "human"}, {"COVEY_CONFIG", ""}};
}

// Zero-padded, because labels are sorted as text.
std::string Labels(absl::string_view rack, uint32_t rack_index, uint32_t host_index) {
  return absl::StrFormat("local/%s-%04d/%s-%04d", rack, rack_index, "host", host_index);
}

// With a core per process a busy-waiting server takes time from no other process, and answers in
// half the time: waking a sleeping thread costs 15 to 30 us.
bool EachHasItsCore(const RunOptions& options) {
  return options.server_loops > 0 &&
         options.servers * options.server_loops + options.workers() <= options.cores;
}

void AddIfGiven(absl::string_view flag, absl::string_view value, Program& program) {
  if (value.empty()) return;
  program.arguments.emplace_back(flag);
  program.arguments.emplace_back(value);
}

}  // namespace

Program SchedulerProgram(const RunOptions& options, const LocalPaths& paths) {
  Program program = {
      .name = "scheduler",
      .arguments = {paths.scheduler_binary, "--job", options.job, "--host", kHost, "--port",
                    absl::StrCat(paths.port), "--port-file", paths.port_file, "--servers",
                    absl::StrCat(options.servers), "--groups", options.Groups(), "--workers",
                    absl::StrCat(options.workers_per_group), "--log-file", paths.scheduler_log,
                    "--stragglers", std::string(StragglerRungName(options.stragglers))},
      .environment = CommonEnvironment()};
  AddIfGiven("--tls", options.TlsOf(IdentityRole::kScheduler), program);
  AddIfGiven("--store", options.store, program);
  AddIfGiven("--resume", options.resume, program);
  AddIfGiven("--snapshot-every", options.snapshot_every, program);
  AddIfGiven("--feedback-flush-steps", options.feedback_flush_steps, program);
  AddIfGiven("--durability", options.durability, program);
  AddIfGiven("--on-loss", options.on_loss, program);
  AddIfGiven("--snapshots-kept", options.snapshots_kept, program);
  AddIfGiven("--initial-values", options.initial_values, program);
  return program;
}

Program ServerProgram(const RunOptions& options, const LocalPaths& paths, absl::string_view address,
                      uint32_t rank) {
  Program program = {
      .name = absl::StrCat("server-", rank),
      .arguments = {paths.server_binary, "--scheduler", std::string(address), "--job", options.job,
                    "--rank", absl::StrCat(rank), "--transport", options.transport, "--data-host",
                    kHost, "--labels", Labels("servers", 0, rank)},
      .environment = CommonEnvironment()};
  AddIfGiven("--tls", options.TlsOf(IdentityRole::kServer), program);
  AddIfGiven("--store", options.store, program);
  AddIfGiven("--loops", options.server_loops > 0 ? absl::StrCat(options.server_loops) : "",
             program);
  AddIfGiven("--record", options.record_folder, program);
  if (!options.record_folder.empty() && !options.record_gradients) {
    program.arguments.push_back("--record-gradients=false");
  }
  AddIfGiven("--spin", EachHasItsCore(options) ? kSpin : "", program);
  return program;
}

Program WorkerProgram(const RunOptions& options, absl::string_view address, uint32_t rank) {
  Program program = {.name = absl::StrCat("worker-", rank),
                     .arguments = options.program,
                     .environment = CommonEnvironment()};
  const uint32_t group = rank / options.workers_per_group;
  program.environment.insert({
      {"COVEY_SCHEDULER", std::string(address)},
      {"COVEY_JOB", options.job},
      {"COVEY_RANK", absl::StrCat(rank)},
      {"COVEY_LABELS", Labels("group", group, rank % options.workers_per_group)},
      {"COVEY_DATA_HOST", kHost},
      {"COVEY_TRANSPORT", options.transport},
  });
  if (!options.tls.empty()) {
    program.environment.insert({"COVEY_TLS", options.TlsOf(IdentityRole::kWorker)});
  }
  return program;
}

}  // namespace covey::cli
