// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/simulate_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey::cli {
namespace {

constexpr size_t kGroupCountsMax = 64;

SimulateOptions CoriPreset() {
  SimulateOptions options{.preset = "cori", .groups = {1, 2, 4, 8, 16}};
  ClusterOptions& cluster = options.cluster;
  cluster.nodes = 9600;
  cluster.racks = 50;
  cluster.servers = 6;
  cluster.contract.kind = Contract::Kind::kAsync;
  cluster.step_times.noise = 0.08;
  cluster.step_times.hiccup_rate = 2e-5;
  cluster.step_times.hiccup_factor = 5;
  // Binomial trees up and down, 2 ceil(log2 members) messages deep. The hops, of a hundredth of a
  // step each, are the whole cost of a collective.
  cluster.collective = Algorithm::kHalvingDoubling;
  options.step_seconds = 1;
  options.message_us = 0;
  options.latency_us = options.uplink_latency_us = 9500;
  options.server_latency_us = 0;
  options.link_gbps = 1e6;
  // The servers need a thousandth of a step for the push and pull of one group.
  options.gradient_mib = 300;
  options.server_gbps = 300 * 8.0 * (1 << 20) / 1e9 / 6 / 0.0005;
  return options;
}

SimulateOptions SspPreset() {
  SimulateOptions options{.preset = "ssp", .groups = {32}};
  ClusterOptions& cluster = options.cluster;
  cluster.nodes = 32;
  cluster.contract = {.kind = Contract::Kind::kSsp, .staleness = 3};
  cluster.step_times.noise = 0.18;
  cluster.step_times.hiccup_rate = 0.05;
  cluster.step_times.hiccup_factor = 5;
  cluster.steps = 2000;
  options.step_seconds = 1;
  // A request to the servers takes a tenth of a step, however many nodes send one.
  options.gradient_mib = 1;
  options.link_gbps = options.server_gbps = 1e6;
  options.server_latency_us = 50'000;
  return options;
}

absl::Status ParseGroups(absl::string_view text, std::vector<uint32_t>& groups) {
  groups.clear();
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    uint32_t count = 0;
    if (!absl::SimpleAtoi(part, &count) || count > kNodesMax) {
      return absl::InvalidArgumentError("not a list of numbers, as in 1,2,4");
    }
    groups.push_back(count);
  }
  if (groups.size() > kGroupCountsMax) {
    return absl::InvalidArgumentError(absl::StrCat("longer than ", kGroupCountsMax));
  }
  return absl::OkStatus();
}

absl::Status ParseSlowNodes(absl::string_view text, std::vector<SlowNode>& slow_nodes) {
  slow_nodes.clear();
  for (absl::string_view part : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> halves =
        absl::StrSplit(part, absl::MaxSplits(':', 1));
    SlowNode slow;
    if (!absl::SimpleAtoi(halves.first, &slow.rank) ||
        !absl::SimpleAtod(halves.second, &slow.factor) || !std::isfinite(slow.factor)) {
      return absl::InvalidArgumentError("not of the form RANK:FACTOR,..., as in 3:4,17:1.5");
    }
    slow_nodes.push_back(slow);
  }
  return absl::OkStatus();
}

std::string SlowNodesAsText(const std::vector<SlowNode>& slow_nodes) {
  return absl::StrJoin(slow_nodes, ",", [](std::string* out, const SlowNode& slow) {
    absl::StrAppend(out, slow.rank, ":", slow.factor);
  });
}

struct DetailName {
  absl::string_view name;
  Detail detail;
};
constexpr std::array<DetailName, 3> kDetails = {
    {{"auto", Detail::kAuto}, {"messages", Detail::kMessages}, {"model", Detail::kModel}}};

// A value that has a parser and names of its own; `field` outlives `file`.
template <typename T>
void AddParsed(ConfigFile& file, absl::string_view name, T* field,
               absl::StatusOr<T> (*parse)(absl::string_view), std::string (*print)(const T&),
               absl::string_view help) {
  file.Add(
      name,
      [field, parse](absl::string_view text) {
        COVEY_ASSIGN_OR_RETURN(*field, parse(text));
        return absl::OkStatus();
      },
      [field, print] { return print(*field); }, help);
}

absl::StatusOr<Detail> ParseDetail(absl::string_view text) {
  for (const auto& [name, detail] : kDetails) {
    if (name == text) return detail;
  }
  return absl::InvalidArgumentError("not accepted; choose auto, messages or model");
}
std::string DetailName(const Detail& detail) {
  return std::string(kDetails[static_cast<size_t>(detail)].name);
}

absl::StatusOr<Algorithm> ParseCollective(absl::string_view text) { return ParseAlgorithm(text); }
std::string CollectiveText(const Algorithm& algorithm) { return AlgorithmName(algorithm); }

std::string RungText(const StragglerRung& wanted) {
  for (absl::string_view name : {"off", "observe", "shift", "partial", "regroup", "evict"}) {
    if (const auto rung = ParseStragglerRung(name); rung.ok() && *rung == wanted) {
      return std::string(name);
    }
  }
  return "";
}

}  // namespace

absl::StatusOr<SimulateOptions> PresetOptions(absl::string_view name) {
  if (name == "none") return SimulateOptions();
  if (name == "cori") return CoriPreset();
  if (name == "ssp") return SspPreset();
  return absl::InvalidArgumentError("not accepted; choose none, cori or ssp");
}

void SimulateOptions::AddTo(ConfigFile& file) {
  file.Add(
      "preset",
      [this](absl::string_view text) {
        COVEY_RETURN_IF_ERROR(PresetOptions(text).status());
        preset = std::string(text);
        return absl::OkStatus();
      },
      [this] { return preset; },
      "settings to start from: none, cori (9,600 nodes as in Kurth et al. 2017) or ssp (32 workers "
      "with hiccups)");
  file.Add("nodes", &cluster.nodes, "workers");
  file.Add("racks", &cluster.racks, "racks, over which the nodes are spread evenly");
  file.Add(
      "groups", [this](absl::string_view text) { return ParseGroups(text, groups); },
      [this] { return absl::StrJoin(groups, ","); },
      "numbers of groups to compare, separated by commas; 0 = the group planner's choice");
  file.Add("servers", &cluster.servers,
           "servers; 0 = none, for one group that holds the parameters itself");
  AddParsed<Contract>(file, "contract", &cluster.contract, ParseContract, ContractName,
                      "bsp, ssp:N, async, buffered, buffered:K or local:H");
  file.Add("gradient-mib", &gradient_mib, "size of the gradient, and of the parameters");
  file.Add("tensors", &cluster.tensors,
           "equal tensors in the gradient: one is sent while others are computed");
  file.Add("samples", &cluster.samples, "samples per node and step");
  file.Add("link-gbps", &link_gbps, "bandwidth of each node, in each direction");
  file.Add("uplink-gbps", &uplink_gbps, "bandwidth of each rack's uplink; 0 = unlimited");
  file.Add("server-gbps", &server_gbps, "bandwidth of each server");
  file.Add("message-us", &message_us, "time that a worker's loop takes per message");
  file.Add("latency-us", &latency_us, "latency inside a rack, one way");
  file.Add("uplink-latency-us", &uplink_latency_us, "latency between racks");
  file.Add("server-latency-us", &server_latency_us, "latency to or from a server");
  file.Add("step-seconds", &step_seconds, "median computation time of a node per step");
  file.Add("step-noise", &cluster.step_times.noise,
           "sigma of a lognormal factor on each step of each node");
  file.Add("hiccup-rate", &cluster.step_times.hiccup_rate,
           "chance that a step of a node is a hiccup");
  file.Add("hiccup-factor", &cluster.step_times.hiccup_factor,
           "how many times as long a hiccup takes");
  file.Add(
      "straggler",
      [this](absl::string_view text) {
        return ParseSlowNodes(text, cluster.step_times.slow_nodes);
      },
      [this] { return SlowNodesAsText(cluster.step_times.slow_nodes); },
      "nodes that are always slower: RANK:FACTOR,...");
  file.Add("trace", &trace_file,
           "draw step times from this file of a real run instead: lines of {\"worker\": 0, "
           "\"step\": 1, \"compute_seconds\": 0.012}");
  file.Add("steps", &cluster.steps, "steps of each group, on average");
  file.Add("seed", &cluster.seed, "equal seeds give equal results");
  AddParsed<StragglerRung>(file, "stragglers", &cluster.ladder, ParseStragglerRung, RungText,
                           "strongest measure against slow nodes: off, observe, shift, "
                           "partial, regroup or evict");
  AddParsed<Algorithm>(file, "collective", &cluster.collective, ParseCollective, CollectiveText,
                       "algorithm inside groups: auto, direct, ring, multi-ring, hierarchical, "
                       "halving-doubling, tree or one-shot");
  AddParsed<Detail>(file, "detail", &cluster.detail, ParseDetail, DetailName,
                    "collectives: each message, or by the cost model; auto = messages up to 64 "
                    "nodes");
  file.Add(
      "output",
      [this](absl::string_view text) {
        json = text == "json";
        return json || text == "text"
                   ? absl::OkStatus()
                   : absl::InvalidArgumentError("not accepted; choose text or json");
      },
      [this] { return json ? "json" : "text"; }, "text, or json for programs; also -o");
  file.Add("report", &report_file, "write one HTML page with curves to this file");
}

absl::Status SimulateOptions::Finish() {
  constexpr double kBytesPerGigabit = 1e9 / 8;
  constexpr double kMib = 1 << 20;
  for (const double value : {gradient_mib, link_gbps, uplink_gbps, server_gbps, message_us,
                             latency_us, uplink_latency_us, server_latency_us, step_seconds}) {
    if (std::isfinite(value) && value >= 0) continue;
    return absl::InvalidArgumentError(
        "a size, speed or time is negative or not a number; see --print-config");
  }
  cluster.gradient_bytes = static_cast<uint64_t>(std::min(gradient_mib * kMib, 9e18));
  cluster.links = {.node_bytes_per_second = link_gbps * kBytesPerGigabit,
                   .uplink_bytes_per_second = uplink_gbps * kBytesPerGigabit,
                   .server_bytes_per_second = server_gbps * kBytesPerGigabit,
                   .message_time = absl::Microseconds(message_us),
                   .rack_latency = absl::Microseconds(latency_us),
                   .uplink_latency = absl::Microseconds(uplink_latency_us),
                   .server_latency = absl::Microseconds(server_latency_us)};
  cluster.step_times.median = absl::Seconds(step_seconds);
  COVEY_RETURN_IF_ERROR(cluster.Validate());
  for (const uint32_t count : groups) {
    if (count > cluster.nodes) {
      return absl::InvalidArgumentError(
          absl::StrCat("--groups has ", count, ", but there are only ", cluster.nodes, " nodes"));
    }
    if (count != 1 && cluster.servers == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--groups has ", count, ", but without servers there is one group; add --servers"));
    }
  }
  return absl::OkStatus();
}

}  // namespace covey::cli
