// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/scaling/scaling_command.h"

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/bench/scaling/scaling.h"
#include "client/cli/console/command.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/terminal.h"
#include "client/cli/console/text_file.h"
#include "client/cli/process/child_process.h"
#include "client/cli/run/local_cluster.h"
#include "client/cli/run/plan/binaries.h"
#include "client/cli/run/plan/run_options.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "common/base/plural.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr char kSummary[] =
    "Runs a program on this machine with some numbers of workers in one group, and shows samples "
    "per second and the efficiency beside the smallest number, the baseline. --scaling weak: each "
    "worker has --batch samples per step. --scaling strong: all workers have --batch samples per "
    "step together. In the program's arguments {batch} stands for the samples of a step of all "
    "workers, and {worker_batch} for those of one: covey bench scaling -- synthetic --group-batch "
    "{batch}. One worker prints 'result {\"samples_per_second\": RATE}' at the end.";
constexpr int kRepetitionsMax = 100;

struct Options {
  ScalingPlan plan;
  uint32_t repetitions = 3;
  // Servers, transport and programs of each run.
  RunOptions run{
      .job = "scaling", .cores = UsableCores(), .show = RunOptions::Show::kProgramErrors};
  std::string out_file;
  bool json = false;

  void AddTo(ConfigFile& file);
  absl::Status Validate() const;
};

absl::Status ParseWorkers(absl::string_view text, std::vector<uint32_t>& workers) {
  workers.clear();
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    uint32_t count = 0;
    if (!absl::SimpleAtoi(part, &count) || count < 1 || count > kProcessesMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "' is not a number of workers; choose 1 to ", kProcessesMax));
    }
    workers.push_back(count);
  }
  return absl::OkStatus();
}

absl::Status ParseKind(absl::string_view text, ScalingPlan::Kind& kind) {
  for (const auto choice : {ScalingPlan::Kind::kWeak, ScalingPlan::Kind::kStrong}) {
    if (text != NameOf(choice)) continue;
    kind = choice;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is neither weak nor strong"));
}

void Options::AddTo(ConfigFile& file) {
  file.Add(
      "scaling", [this](absl::string_view text) { return ParseKind(text, plan.kind); },
      [this] { return NameOf(plan.kind); },
      "weak: each worker has --batch samples per step; strong: all workers have them together");
  file.Add(
      "workers", [this](absl::string_view text) { return ParseWorkers(text, plan.workers); },
      [this] { return absl::StrJoin(plan.workers, ","); },
      "numbers of workers, growing, with commas between; the first one is the baseline");
  file.Add("batch", &plan.batch,
           "samples per step: of a worker in weak scaling, of all workers in strong scaling");
  file.Add("repetitions", &repetitions,
           "repetitions of each run, in turns; the median is reported");
  file.Add("servers", &run.servers, "servers of each run");
  file.Add("transport", &run.transport, "how tensors travel: auto (shared memory), tcp or ipc");
  file.Add("scheduler-binary", &run.scheduler_binary, "scheduler; default: the one beside covey");
  file.Add("server-binary", &run.server_binary, "server; default: the one beside covey");
  file.Add("out", &out_file, "also write the JSON to this file");
  AddOutput(file, &json);
  file.TakeRest(&plan.program, "-- PROGRAM [ARGUMENT...]   the program of each worker");
}

absl::Status Options::Validate() const {
  if (repetitions < 1 || repetitions > kRepetitionsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--repetitions is ", repetitions, "; choose 1 to ", kRepetitionsMax));
  }
  return plan.Validate();
}

// The run of this many workers.
RunOptions RunOf(const Options& options, uint32_t workers) {
  RunOptions run = options.run;
  run.workers_per_group = workers;
  run.program = options.plan.ProgramFor(workers);
  return run;
}

// Checks everything that can be checked before the first run.
absl::StatusOr<LocalPaths> Check(const Options& options) {
  COVEY_RETURN_IF_ERROR(options.Validate());
  const RunOptions largest = RunOf(options, options.plan.workers.back());
  COVEY_RETURN_IF_ERROR(largest.Validate());
  COVEY_RETURN_IF_ERROR(FindProgram(largest.program[0]).status());
  if (!options.out_file.empty()) COVEY_RETURN_IF_ERROR(CheckWritable(options.out_file));
  return FindBinaries(largest);
}

// Adds a rate to the row of each number of workers, until a run fails.
absl::Status Measure(const Options& options, const LocalPaths& binaries, Terminal& terminal,
                     std::vector<ScalingRow>& rows) {
  for (uint32_t repetition = 0; repetition < options.repetitions; ++repetition) {
    for (ScalingRow& row : rows) {
      const RunOutcome outcome = RunLocalCluster(RunOf(options, row.workers), binaries, terminal);
      COVEY_RETURN_IF_ERROR(outcome.status);
      COVEY_ASSIGN_OR_RETURN(const double rate, RateIn(outcome.result));
      row.repetitions.push_back(rate);
      terminal.Print(Terminal::Stream::kError, absl::StrCat(Plural(row.workers, "worker"), ": ",
                                                            ShowNumber(rate), " samples/s"));
    }
  }
  return absl::OkStatus();
}

absl::Status Scale(const Options& options, const LocalPaths& binaries) {
  Terminal terminal;
  std::vector<ScalingRow> rows;
  for (const uint32_t workers : options.plan.workers) rows.push_back({.workers = workers});
  const absl::Status measured = Measure(options, binaries, terminal, rows);
  // After a failed run those before it are reported.
  std::erase_if(rows, [](const ScalingRow& row) { return row.repetitions.empty(); });
  if (rows.empty()) return measured;
  const std::string json = ScalingAsJson(options.plan, rows, options.run.cores);
  terminal.Print(Terminal::Stream::kOutput,
                 options.json ? json : ScalingAsTable(options.plan, rows, options.run.cores));
  if (!options.out_file.empty()) {
    COVEY_RETURN_IF_ERROR(WriteTextFile(options.out_file, json + "\n"));
  }
  return measured;
}

}  // namespace

int ScalingCommand(int count, const char* const* arguments) {
  Options options;
  ConfigFile file("covey bench scaling", kSummary);
  options.AddTo(file);
  if (const auto code = LoadWithShortOutput(file, count, arguments)) return *code;
  const absl::StatusOr<LocalPaths> binaries = Check(options);
  if (!binaries.ok()) {
    PrintFailure("bench scaling", binaries.status());
    return kExitUsage;
  }
  const absl::Status scaled = Scale(options, *binaries);
  if (scaled.ok()) return kExitOk;
  PrintFailure("bench scaling", scaled);
  return kExitFailed;
}

}  // namespace covey::cli
