// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/bench_command.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/bench/bench_options.h"
#include "client/cli/bench/bench_result.h"
#include "client/cli/bench/guard.h"
#include "client/cli/bench/limits/limits.h"
#include "client/cli/bench/machine/environment.h"
#include "client/cli/bench/measuring.h"
#include "client/cli/bench/scaling/scaling_command.h"
#include "client/cli/console/command.h"
#include "client/cli/console/terminal.h"
#include "client/cli/console/text_file.h"
#include "client/cli/run/local_cluster.h"
#include "client/cli/run/plan/binaries.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "common/base/status_macros.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr char kSummary[] =
    "Measures push with apply, pull, round trips and more on this machine, in turns with what the "
    "machine allows: raw sockets, ZeroMQ alone, shared memory, memory. Each repetition runs all of "
    "them, ratios are taken within repetitions, and repetitions that other programs disturbed are "
    "repeated. GB/s is payload in one direction. With --against it compares two builds instead. "
    "covey bench scaling runs a program with 1, 2 and 4 workers.";

// A cluster of its own has this many servers for a block.
uint32_t ServersFor(const Block& block, const BenchOptions& options) {
  return block.replicas != 0 ? block.servers
                             : std::max(block.servers, *std::max_element(options.replicas.begin(),
                                                                         options.replicas.end()));
}

// The numbers of servers of the clusters that the blocks need, smallest first.
std::vector<uint32_t> ServerCounts(const BenchOptions& options) {
  std::vector<uint32_t> counts;
  for (const Block& block : options.blocks) {
    if (NeedsCluster(block.operations)) counts.push_back(ServersFor(block, options));
  }
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
  return counts;
}

// Starts a cluster with this number of servers, whose only worker runs this program again.
absl::StatusOr<BenchResult> MeasureOwnCluster(const BenchOptions& options, uint32_t servers,
                                              const std::string& transport, Terminal& terminal) {
  std::vector<Block> blocks = options.blocks;
  std::erase_if(blocks, [&](const Block& block) {
    return !NeedsCluster(block.operations) || ServersFor(block, options) != servers;
  });
  COVEY_ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Make());
  const std::string result_file = folder->path() + "/result.json";
  RunOptions run{.servers = servers,
                 .transport = transport,
                 .job = "bench",
                 .server_loops = 1,
                 .cores = UsableCores(),
                 .show = RunOptions::Show::kProgramErrors};
  run.program = {OwnPath(),     "bench",   "--blocks", BlockNames(blocks),
                 "--transport", transport, "--out",    result_file};
  for (std::string& argument : options.MeasuringArguments()) {
    run.program.push_back(std::move(argument));
  }
  COVEY_ASSIGN_OR_RETURN(const LocalPaths binaries, FindBinaries(run));
  terminal.Print(Terminal::Stream::kError,
                 absl::StrCat("measuring ", BlockNames(blocks), " over ", transport, " with ",
                              servers, servers == 1 ? " server …" : " servers …"));
  const RunOutcome outcome = RunLocalCluster(run, binaries, terminal);
  COVEY_RETURN_IF_ERROR(outcome.status);
  COVEY_ASSIGN_OR_RETURN(const std::string json, ReadTextFile(result_file));
  return ResultFromJson(json);
}

// Prints a line per finished figure.
std::function<void(absl::string_view)> ProgressOn(Terminal& terminal) {
  return [&terminal](absl::string_view line) { terminal.Print(Terminal::Stream::kError, line); };
}

// As the program that a cluster runs. The launcher reads the file; a user reads the result line.
absl::Status MeasureGivenCluster(const BenchOptions& options, Terminal& terminal) {
  COVEY_ASSIGN_OR_RETURN(const BenchResult result, MeasureCluster(options, ProgressOn(terminal)));
  if (!options.out_file.empty()) return WriteTextFile(options.out_file, ResultAsJson(result, 0));
  terminal.Print(Terminal::Stream::kOutput,
                 absl::StrCat("result {\"figures\":", FiguresAsJson(result.figures), "}"));
  return absl::OkStatus();
}

absl::Status PrintResult(const BenchOptions& options, const std::string& json,
                         const std::string& table, Terminal& terminal) {
  if (!options.out_file.empty()) {
    COVEY_RETURN_IF_ERROR(WriteTextFile(options.out_file, json + "\n"));
  }
  terminal.Print(Terminal::Stream::kOutput, options.table || !options.json ? table : json);
  return absl::OkStatus();
}

absl::Status MeasureOwnClusters(const BenchOptions& options, Terminal& terminal) {
  BenchResult result = {.environment = ReadEnvironment()};
  if (!options.label.empty())
    result.environment.insert(result.environment.begin(), {"label", options.label});
  COVEY_ASSIGN_OR_RETURN(BenchResult here, MeasureWithoutCluster(options, ProgressOn(terminal)));
  result.Add(std::move(here));
  const std::vector<uint32_t> counts = ServerCounts(options);
  for (const std::string& transport : options.transports) {
    for (const uint32_t servers : counts) {
      COVEY_ASSIGN_OR_RETURN(BenchResult part,
                             MeasureOwnCluster(options, servers, transport, terminal));
      result.Add(std::move(part));
    }
  }
  return PrintResult(options, ResultAsJson(result, counts.empty() ? 0 : counts.back()),
                     ResultAsTable(result), terminal);
}

absl::StatusOr<int> Bench(const BenchOptions& options) {
  COVEY_RETURN_IF_ERROR(options.Validate());
  if (!options.limit_partner.empty()) {
    COVEY_RETURN_IF_ERROR(ServePartner(options.limit_partner));
    return kExitOk;
  }
  Terminal terminal;
  if (!options.against.empty()) {
    COVEY_ASSIGN_OR_RETURN(const std::vector<Comparison> rows, CompareBuilds(options, terminal));
    COVEY_RETURN_IF_ERROR(
        PrintResult(options, ComparisonsAsJson(rows, options), ComparisonsAsTable(rows), terminal));
    return HasSlower(rows) ? kExitFailed : kExitOk;
  }
  COVEY_RETURN_IF_ERROR(options.scheduler.empty() ? MeasureOwnClusters(options, terminal)
                                                  : MeasureGivenCluster(options, terminal));
  return kExitOk;
}

}  // namespace

int BenchCommand(int count, const char* const* arguments) {
  if (count > 1 && absl::string_view(arguments[1]) == "scaling") {
    return ScalingCommand(count - 1, arguments + 1);
  }
  BenchOptions options;
  ConfigFile file("covey bench", kSummary);
  options.AddTo(file);
  if (const auto code = LoadWithShortOutput(file, count, arguments)) return *code;
  const absl::StatusOr<int> code = Bench(options);
  if (code.ok()) return *code;
  PrintFailure(arguments[0], code.status());
  return absl::IsInvalidArgument(code.status()) ? kExitUsage : ExitCodeOf(code.status());
}

}  // namespace covey::cli
