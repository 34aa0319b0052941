// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/simulate_command.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/console/command.h"
#include "client/cli/console/terminal.h"
#include "client/cli/console/text_file.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/simulate/cluster_model.h"
#include "client/cli/simulate/recorded_steps.h"
#include "client/cli/simulate/simulate_options.h"
#include "client/cli/simulate/simulate_report.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr char kSummary[] =
    "Predicts a training run on a cluster: groups that synchronize internally and exchange updates "
    "through servers, in virtual time, under the policies of the real processes. Compares numbers "
    "of groups. To predict a real run on this machine: --trace with the step times that it wrote, "
    "--nodes, --groups, --servers and --gradient-mib of that run, and for loopback --link-gbps "
    "and --server-gbps as measured by `covey bench`.";

// Reads everything into `options`, whose values are the defaults.
std::optional<int> Load(int count, const char* const* arguments, SimulateOptions& options) {
  ConfigFile file("covey simulate", kSummary);
  options.AddTo(file);
  return file.LoadForMain(count, arguments);
}

// The preset in arguments or file, which selects the defaults of all other options. Errors are
// reported when all options are read.
std::string PresetAskedFor(int count, const char* const* arguments) {
  SimulateOptions scratch;
  ConfigFile file("covey simulate", kSummary);
  scratch.AddTo(file);
  const auto outcome = file.Load({arguments + 1, arguments + count},
                                 [](const char*) -> const char* { return nullptr; });
  return outcome.ok() ? scratch.preset : "none";
}

absl::StatusOr<SimulateOptions> ReadOptions(int count, const char* const* arguments,
                                            std::optional<int>& exit_code) {
  const std::string asked = PresetAskedFor(count, arguments);
  COVEY_ASSIGN_OR_RETURN(SimulateOptions options, PresetOptions(asked));
  exit_code = Load(count, arguments, options);
  if (exit_code.has_value() || options.preset == asked) return options;
  // The environment names another preset.
  COVEY_ASSIGN_OR_RETURN(SimulateOptions others, PresetOptions(options.preset));
  exit_code = Load(count, arguments, others);
  return others;
}

absl::Status ReadTrace(SimulateOptions& options) {
  if (options.trace_file.empty()) return absl::OkStatus();
  COVEY_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(options.trace_file));
  absl::StatusOr<RecordedSteps> recorded = ParseRecordedSteps(text);
  if (!recorded.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--trace ", options.trace_file, ": ", recorded.status().message()));
  }
  options.cluster.step_times.recorded = *std::move(recorded);
  return absl::OkStatus();
}

absl::Status Prepare(SimulateOptions& options) {
  COVEY_RETURN_IF_ERROR(options.Finish());
  if (!options.report_file.empty()) COVEY_RETURN_IF_ERROR(CheckWritable(options.report_file));
  return ReadTrace(options);
}

// Shows the progress in one line; nothing when the output is no terminal.
void ShowProgress(Terminal& terminal, uint32_t groups, double part) {
  if (!terminal.interactive()) return;
  terminal.SetBlock({absl::StrFormat("simulating %d groups: %.0f %%", groups, part * 100)});
  terminal.Redraw();
}

}  // namespace

int SimulateCommand(int count, const char* const* arguments) {
  std::vector<const char*> expanded(arguments, arguments + count);
  for (const char*& argument : expanded) {
    if (absl::string_view(argument) == "-o") argument = "--output";
  }
  std::optional<int> exit_code;
  absl::StatusOr<SimulateOptions> read = ReadOptions(count, expanded.data(), exit_code);
  if (exit_code.has_value()) return *exit_code;
  if (!read.ok()) {
    PrintFailure(arguments[0], read.status());
    return kExitUsage;
  }
  SimulateOptions& options = *read;
  if (const absl::Status ready = Prepare(options); !ready.ok()) {
    PrintFailure(arguments[0], ready);
    return kExitUsage;
  }

  Terminal terminal;
  std::vector<ClusterResult> results;
  for (const uint32_t groups : options.groups) {
    results.push_back(SimulateCluster(options.cluster, groups,
                                      [&](double part) { ShowProgress(terminal, groups, part); }));
  }
  if (terminal.interactive()) terminal.SetBlock({});
  std::string text =
      options.json ? SimulationJson(options, results) : SimulationText(options, results);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  terminal.Print(Terminal::Stream::kOutput, text);
  if (options.report_file.empty()) return kExitOk;
  const absl::Status written = WriteTextFile(options.report_file, SimulationPage(options, results));
  if (!written.ok()) {
    PrintFailure(arguments[0], written);
    return kExitFailed;
  }
  terminal.Print(Terminal::Stream::kError, absl::StrCat("report: ", options.report_file));
  return kExitOk;
}

}  // namespace covey::cli
