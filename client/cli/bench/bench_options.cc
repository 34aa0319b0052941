// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/bench_options.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/collective/algorithm.h"
#include "common/net/data_transport.h"
#include "common/runtime/config_value.h"

namespace covey::cli {
namespace {

constexpr uint64_t kSizeMax = uint64_t{1} << 30;
constexpr int kRepetitionsMax = 1000;
constexpr uint32_t kMembersMax = 64;

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
    if (!IsDataTransport(transport)) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", transport, "' is none of ", kDataTransportNames));
    }
  }
  return absl::OkStatus();
}

// Numbers from `min` to `max`, separated by commas.
absl::Status ParseCounts(absl::string_view text, const char* what, uint32_t min, uint32_t max,
                         std::vector<uint32_t>& counts) {
  counts.clear();
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    uint32_t count = 0;
    if (!absl::SimpleAtoi(part, &count) || count < min || count > max) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", part, "' is not a number of ", what, "; choose ", min, " to ", max));
    }
    counts.push_back(count);
  }
  return absl::OkStatus();
}

absl::Status ParseAlgorithms(absl::string_view text, std::vector<std::string>& algorithms) {
  algorithms = absl::StrSplit(text, ',');
  for (const std::string& algorithm : algorithms) {
    COVEY_RETURN_IF_ERROR(ParseAlgorithm(algorithm).status());
  }
  return absl::OkStatus();
}

std::string SizesAsText(const std::vector<uint64_t>& sizes) {
  return absl::StrJoin(sizes, ",",
                       [](std::string* out, uint64_t bytes) { *out += FormatBytes(bytes); });
}

}  // namespace

absl::Status ParseTolerance(absl::string_view text, double& tolerance) {
  const bool is_percentage = absl::ConsumeSuffix(&text, "%");
  if (!absl::SimpleAtod(text, &tolerance)) {
    return absl::InvalidArgumentError("a tolerance is a percentage: 3%");
  }
  if (is_percentage) tolerance /= 100;
  if (!(tolerance >= 0 && tolerance < 1)) {
    return absl::InvalidArgumentError("a tolerance is at least 0% and below 100%");
  }
  return absl::OkStatus();
}

BenchOptions::BenchOptions() : blocks(*ParseBlocks("default")) {}

void BenchOptions::AddTo(ConfigFile& file) {
  file.Add(
      "blocks",
      [this](absl::string_view text) -> absl::Status {
        COVEY_ASSIGN_OR_RETURN(blocks, ParseBlocks(text));
        return absl::OkStatus();
      },
      [this] { return BlockNames(blocks); },
      absl::StrCat("what to measure; default, all, or a list of: ", DescribeBlocks()));
  file.Add(
      "sizes", [this](absl::string_view text) { return ParseSizes(text, sizes); },
      [this] { return SizesAsText(sizes); }, "payload sizes to measure, separated by commas");
  file.Add(
      "transport", [this](absl::string_view text) { return ParseTransports(text, transports); },
      [this] { return absl::StrJoin(transports, ","); },
      "auto, tcp or ipc; several with commas between");
  file.Add("repetitions", &repetitions,
           "repetitions of each measurement; the median is reported, ratios from 7 on mean "
           "something");
  file.Add("duration", &duration, "minimum duration of each turn");
  file.Add("round-trips", &round_trips, "64-byte round trips per turn");
  file.Add(
      "replicas",
      [this](absl::string_view text) {
        return ParseCounts(text, "replicas", 1, kReplicasMax, replicas);
      },
      [this] { return absl::StrJoin(replicas, ","); },
      "numbers of replicas to measure, in turns: 1,2; each replica needs its own server");
  file.Add("limits", &limits, "also measure what the machine allows, in turns with ours");
  file.Add(
      "members",
      [this](absl::string_view text) {
        return ParseCounts(text, "members", 2, kMembersMax, members);
      },
      [this] { return absl::StrJoin(members, ","); },
      "numbers of members that the block collectives measures");
  file.Add(
      "algorithms", [this](absl::string_view text) { return ParseAlgorithms(text, algorithms); },
      [this] { return absl::StrJoin(algorithms, ","); },
      "algorithms that the block collectives measures: auto, ring, direct, …");
  file.Add("memory-bytes", ConfigFile::Bytes{&memory_bytes},
           "size of each array of the block memory; above the caches");
  file.Add("quiet-wait", &quiet_wait,
           "how long to wait in all, per cluster, while other programs use 8 % of the machine; "
           "then noisy repetitions are kept and counted");
  file.Add("label", &label, "a word about this run for the JSON: a commit, a machine");
  AddOutput(file, &json);
  file.Add("table", &table, "same as --output table");
  file.Add("out", &out_file, "also write the JSON to this file");
  file.Add("against", &against,
           "measure this program and another build of it (the path of its covey) in turns; exit "
           "code 1 when this one is slower");
  file.Add(
      "tolerance", [this](absl::string_view text) { return ParseTolerance(text, tolerance); },
      [this] { return absl::StrCat(tolerance * 100, "%"); },
      "--against: slower means that the whole interval of the ratio lies more than this below 1");
  file.Add("scheduler", &scheduler,
           "measure this cluster instead of starting one, and print a result line");
  file.Add("job", &job, "the job of --scheduler");
  file.Add("tls", &tls, "folder of a client's certificate, where --scheduler has --tls");
  file.Add("limit-partner", &limit_partner,
           "be the other process of a limit; used by this command itself");
}

absl::Status BenchOptions::Validate() const {
  if (repetitions < 1 || repetitions > kRepetitionsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--repetitions is ", repetitions, "; choose 1 to ", kRepetitionsMax));
  }
  if (round_trips < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--round-trips is ", round_trips, "; choose at least 1"));
  }
  if (memory_bytes < 4096 || memory_bytes % 4096 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--memory-bytes is ", memory_bytes, "; choose a multiple of 4KiB"));
  }
  return absl::OkStatus();
}

std::vector<std::string> BenchOptions::MeasuringArguments() const {
  return {"--sizes",
          SizesAsText(sizes),
          "--repetitions",
          absl::StrCat(repetitions),
          "--duration",
          absl::FormatDuration(duration),
          "--round-trips",
          absl::StrCat(round_trips),
          "--replicas",
          absl::StrJoin(replicas, ","),
          absl::StrCat("--limits=", limits ? "true" : "false"),
          "--members",
          absl::StrJoin(members, ","),
          "--algorithms",
          absl::StrJoin(algorithms, ","),
          "--memory-bytes",
          FormatBytes(memory_bytes),
          "--quiet-wait",
          absl::FormatDuration(quiet_wait)};
}

}  // namespace covey::cli
