// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/bench_command.h"

#include <poll.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "client/cli/bench/client_load.h"
#include "client/cli/bench/figure.h"
#include "client/cli/bench/raw_pair.h"
#include "client/cli/console/command.h"
#include "client/cli/console/terminal.h"
#include "client/cli/console/text_file.h"
#include "client/cli/process/child_process.h"
#include "client/cli/run/local_cluster.h"
#include "client/cli/run/plan/binaries.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/runtime/config_file.h"
#include "common/runtime/config_value.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr uint64_t kSizeMax = uint64_t{1} << 30;
constexpr int kRepetitionsMax = 1000;
constexpr int kRawPeerStartMilliseconds = 10000;

struct BenchOptions {
  LoadOptions load;
  std::vector<std::string> transports = {"tcp", "ipc"};
  // `table`, or `json` = false, selects a table instead of JSON.
  bool json = true;
  bool table = false;
  std::string out_file;
  // Set: measure this cluster, as a program started by `covey run`.
  std::string scheduler;
  std::string job = "default";
  // Set: be the receiving half of the raw pair.
  std::string raw_listen;
};

absl::Status ParseSizes(absl::string_view text, std::vector<uint64_t>& sizes) {
  sizes.clear();
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    COVEY_ASSIGN_OR_RETURN(const uint64_t bytes, ParseBytes(part));
    if (bytes < sizeof(float) || bytes % sizeof(float) != 0 || bytes > kSizeMax) {
      return absl::InvalidArgumentError(
          absl::StrCat(part, " is not a multiple of 4 bytes up to 1GiB"));
    }
    sizes.push_back(bytes);
  }
  return absl::OkStatus();
}

absl::Status ParseTransports(absl::string_view text, std::vector<std::string>& transports) {
  transports = absl::StrSplit(text, ',');
  for (const std::string& transport : transports) {
    if (transport != "tcp" && transport != "ipc") {
      return absl::InvalidArgumentError(absl::StrCat("'", transport, "' is neither tcp nor ipc"));
    }
  }
  return absl::OkStatus();
}

absl::Status ParseReplicas(absl::string_view text, std::vector<uint32_t>& replicas) {
  replicas.clear();
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    uint32_t count = 0;
    if (!absl::SimpleAtoi(part, &count) || count < 1 || count > kReplicasMax) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "' is not a number of replicas; choose 1 to ", kReplicasMax));
    }
    replicas.push_back(count);
  }
  return absl::OkStatus();
}

std::string SizesAsText(const std::vector<uint64_t>& sizes) {
  return absl::StrJoin(sizes, ",",
                       [](std::string* out, uint64_t bytes) { *out += FormatBytes(bytes); });
}

void AddTo(ConfigFile& file, BenchOptions& options) {
  file.Add(
      "sizes", [&](absl::string_view text) { return ParseSizes(text, options.load.sizes); },
      [&] { return SizesAsText(options.load.sizes); },
      "payload sizes to measure, separated by commas");
  file.Add(
      "transport",
      [&](absl::string_view text) { return ParseTransports(text, options.transports); },
      [&] { return absl::StrJoin(options.transports, ","); }, "tcp, ipc or tcp,ipc");
  file.Add("repetitions", &options.load.repetitions,
           "repetitions of each measurement; the median is reported");
  file.Add("duration", &options.load.duration, "minimum duration of each repetition");
  file.Add("round-trips", &options.load.round_trips, "64-byte round trips per repetition");
  file.Add(
      "replicas",
      [&](absl::string_view text) { return ParseReplicas(text, options.load.replicas); },
      [&] { return absl::StrJoin(options.load.replicas, ","); },
      "numbers of replicas to measure, in turns: 1,2; each replica needs its own server");
  AddOutput(file, &options.json);
  file.Add("table", &options.table, "same as --output table");
  file.Add("out", &options.out_file, "also write the JSON to this file");
  file.Add("scheduler", &options.scheduler,
           "measure this cluster instead of starting one, and print a result line");
  file.Add("job", &options.job, "the job of --scheduler");
  file.Add("raw-listen", &options.raw_listen,
           "run only the receiving half of the raw ZeroMQ pair, here; prints its address");
}

absl::Status Validate(const BenchOptions& options) {
  if (options.load.repetitions < 1 || options.load.repetitions > kRepetitionsMax) {
    return absl::InvalidArgumentError(absl::StrCat("--repetitions is ", options.load.repetitions,
                                                   "; choose 1 to ", kRepetitionsMax));
  }
  if (options.load.round_trips < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--round-trips is ", options.load.round_trips, "; choose at least 1"));
  }
  return absl::OkStatus();
}

// Returns the first line that `peer` prints.
absl::StatusOr<std::string> FirstLine(ChildProcess& peer) {
  std::string line;
  while (!absl::StrContains(line, '\n')) {
    pollfd output = {.fd = peer.descriptor(ChildProcess::Stream::kOutput), .events = POLLIN};
    if (output.fd < 0 || poll(&output, 1, kRawPeerStartMilliseconds) != 1) {
      return absl::UnavailableError("the other half of the raw ZeroMQ pair did not start");
    }
    line += peer.Read(ChildProcess::Stream::kOutput);
  }
  return line.substr(0, line.find('\n'));
}

// Runs the other half in a process of its own for the duration of this call.
absl::StatusOr<std::vector<Figure>> MeasureBesideRawPeer(const std::string& transport,
                                                         const LoadOptions& load) {
  COVEY_ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Make());
  const std::string listen =
      transport == "tcp" ? "tcp://127.0.0.1:0" : absl::StrCat("ipc://", folder->path(), "/raw");
  COVEY_ASSIGN_OR_RETURN(
      const auto peer,
      ChildProcess::Start(
          {.name = "raw", .arguments = {OwnPath(), "bench", "--raw-listen", listen}}));
  COVEY_ASSIGN_OR_RETURN(const std::string address, FirstLine(*peer));
  return MeasureRawPair(address, transport, load);
}

// Runs inside the cluster: one client of one server.
absl::StatusOr<std::vector<Figure>> MeasureCluster(BenchOptions options, Terminal& terminal) {
  const std::string& transport = options.transports[0];
  options.load.measured = [&terminal](const Figure& figure) {
    terminal.Print(Terminal::Stream::kError, FigureAsLine(figure));
  };
  std::vector<Figure> figures;
  {
    COVEY_ASSIGN_OR_RETURN(
        const auto client,
        client::ParameterClient::Connect({.scheduler = options.scheduler, .job = options.job}));
    COVEY_ASSIGN_OR_RETURN(figures, MeasureClient(*client, transport, options.load));
  }
  COVEY_ASSIGN_OR_RETURN(std::vector<Figure> raw, MeasureBesideRawPeer(transport, options.load));
  figures.insert(figures.end(), std::make_move_iterator(raw.begin()),
                 std::make_move_iterator(raw.end()));
  return figures;
}

uint32_t ServersFor(const BenchOptions& options) {
  return *std::max_element(options.load.replicas.begin(), options.load.replicas.end());
}

// Starts a cluster for one transport; its only worker runs this program again.
absl::StatusOr<std::vector<Figure>> MeasureOwnCluster(const BenchOptions& options,
                                                      const std::string& transport,
                                                      Terminal& terminal) {
  RunOptions run{.servers = ServersFor(options),
                 .transport = transport,
                 .job = "bench",
                 .server_loops = 1,
                 .cores = UsableCores(),
                 .show = RunOptions::Show::kProgramErrors};
  run.program = {OwnPath(),       "bench",
                 "--transport",   transport,
                 "--sizes",       SizesAsText(options.load.sizes),
                 "--repetitions", absl::StrCat(options.load.repetitions),
                 "--duration",    absl::FormatDuration(options.load.duration),
                 "--round-trips", absl::StrCat(options.load.round_trips),
                 "--replicas",    absl::StrJoin(options.load.replicas, ",")};
  COVEY_ASSIGN_OR_RETURN(const LocalPaths binaries, FindBinaries(run));
  terminal.Print(Terminal::Stream::kError, absl::StrCat("measuring over ", transport, " …"));
  const RunOutcome outcome = RunLocalCluster(run, binaries, terminal);
  COVEY_RETURN_IF_ERROR(outcome.status);
  const nlohmann::json result =
      nlohmann::json::parse(outcome.result, nullptr, /*allow_exceptions=*/false);
  if (!result.is_object() || !result.contains("figures")) {
    return absl::InternalError(
        "the measuring program ended without figures; run it again, or report this");
  }
  return FiguresFromJson(result["figures"].dump());
}

absl::Status Bench(const BenchOptions& options) {
  COVEY_RETURN_IF_ERROR(Validate(options));
  if (!options.raw_listen.empty()) return ServeRawPair(options.raw_listen);
  Terminal terminal;
  if (!options.scheduler.empty()) {
    COVEY_ASSIGN_OR_RETURN(const auto figures, MeasureCluster(options, terminal));
    terminal.Print(Terminal::Stream::kOutput,
                   absl::StrCat("result {\"figures\":", FiguresAsJson(figures), "}"));
    return absl::OkStatus();
  }
  std::vector<Figure> figures;
  for (const std::string& transport : options.transports) {
    COVEY_ASSIGN_OR_RETURN(std::vector<Figure> more,
                           MeasureOwnCluster(options, transport, terminal));
    figures.insert(figures.end(), std::make_move_iterator(more.begin()),
                   std::make_move_iterator(more.end()));
  }
  const std::string json =
      nlohmann::ordered_json({{"cores", UsableCores()},
                              {"clients", 1},
                              {"servers", ServersFor(options)},
                              {"figures", nlohmann::ordered_json::parse(FiguresAsJson(figures))}})
          .dump(1);
  if (!options.out_file.empty())
    COVEY_RETURN_IF_ERROR(WriteTextFile(options.out_file, json + "\n"));
  terminal.Print(Terminal::Stream::kOutput,
                 options.table || !options.json ? FiguresAsTable(figures) : json);
  return absl::OkStatus();
}

}  // namespace

int BenchCommand(int count, const char* const* arguments) {
  BenchOptions options;
  ConfigFile file(
      "covey bench",
      "Measures push with apply, pull and a 64-byte round trip of one client and one server on "
      "this machine (as many servers as --replicas needs), beside a raw ZeroMQ pair in the same "
      "run. Medians of several repetitions; GB/s is "
      "payload in one direction. Compare runs only when the machine is otherwise idle.");
  AddTo(file, options);
  if (const auto code = LoadWithShortOutput(file, count, arguments)) return *code;
  const absl::Status status = Bench(options);
  if (status.ok()) return kExitOk;
  PrintFailure(arguments[0], status);
  return absl::IsInvalidArgument(status) ? kExitUsage : ExitCodeOf(status);
}

}  // namespace covey::cli
