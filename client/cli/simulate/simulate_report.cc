// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/simulate_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_table.h"
#include "client/cli/report/page.h"
#include "client/cli/report/plot.h"
#include "common/contract/momentum_governor.h"

namespace covey::cli {
namespace {

// Decisions beyond these are left to JSON.
constexpr size_t kDecisionsShown = 20;

std::string Percent(double part) { return absl::StrFormat("%.1f %%", part * 100); }

std::string Counted(uint64_t count, absl::string_view one) {
  return absl::StrCat(ShowCount(count), " ", one, count == 1 ? "" : "s");
}

std::string Summary(const SimulateOptions& options) {
  const ClusterOptions& cluster = options.cluster;
  return absl::StrCat(Counted(cluster.nodes, "node"), " in ", Counted(cluster.racks, "rack"), ", ",
                      Counted(cluster.servers, "server"), ", contract ",
                      ContractName(cluster.contract), ", ", ShowBytes(cluster.gradient_bytes),
                      " of gradient, seed ", cluster.seed);
}

const ClusterResult& Best(const std::vector<ClusterResult>& results) {
  return *std::max_element(
      results.begin(), results.end(),
      [](const ClusterResult& a, const ClusterResult& b) { return a.efficiency < b.efficiency; });
}

std::string Title(const ClusterResult& result) { return Counted(result.groups, "group"); }

nlohmann::ordered_json ResultAsJson(const ClusterResult& result) {
  nlohmann::ordered_json decisions = nlohmann::ordered_json::array();
  for (const auto& [when, text] : result.decisions) {
    decisions.push_back({{"seconds", absl::ToDoubleSeconds(when)}, {"decision", text}});
  }
  std::vector<uint64_t> staleness = result.staleness;
  while (!staleness.empty() && staleness.back() == 0) staleness.pop_back();
  return {{"groups", result.groups},
          {"members", result.members},
          {"collective", AlgorithmName(result.algorithm)},
          {"detail", result.messages ? "messages" : "model"},
          {"seconds", absl::ToDoubleSeconds(result.elapsed)},
          {"steps_per_second", result.steps_per_second},
          {"group_steps_per_second", result.group_steps_per_second},
          {"samples_per_second", result.samples_per_second},
          {"efficiency", result.efficiency},
          {"time",
           {{"compute", result.shares.compute},
            {"members", result.shares.members},
            {"collectives", result.shares.collectives},
            {"servers", result.shares.servers}}},
          {"staleness_mean", result.staleness_mean},
          {"staleness_max", result.staleness_max},
          {"staleness_histogram", staleness},
          {"implicit_momentum", ImplicitMomentum(result.staleness_mean)},
          {"discarded_pushes", result.discarded},
          {"steps_aside", result.steps_aside},
          {"uplink_bytes_per_step", result.uplink_bytes_per_step},
          {"uplink_bytes", result.uplink_bytes},
          {"throughput", result.throughput},
          {"decisions", decisions}};
}

std::string Plots(const std::vector<ClusterResult>& results) {
  Plot efficiency = {.title = "Efficiency over groups",
                     .x_label = "groups",
                     .y_label = "relative to nodes that always compute",
                     .series = {{.name = "efficiency", .points = {}}}};
  Plot throughput = {.title = "Throughput",
                     .x_label = "seconds since the start",
                     .y_label = "samples per second",
                     .series = {}};
  Plot staleness = {.title = "Staleness",
                    .x_label = "updates by others",
                    .y_label = "fraction of the pushes",
                    .series = {}};
  Plot traffic = {.title = "Traffic of the racks' uplinks",
                  .x_label = "rack",
                  .y_label = "MiB per second, both directions",
                  .series = {}};
  for (const ClusterResult& result : results) {
    efficiency.series[0].points.push_back({static_cast<double>(result.groups), result.efficiency});
    PlotSeries& speed = throughput.series.emplace_back();
    speed.name = Title(result);
    for (const auto& [seconds, samples] : result.throughput) {
      speed.points.push_back({seconds, samples});
    }
    PlotSeries& late = staleness.series.emplace_back();
    late.name = Title(result);
    const double pushes =
        std::max<double>(1, static_cast<double>(std::accumulate(
                                result.staleness.begin(), result.staleness.end(), uint64_t{0})));
    const size_t places = std::min<uint64_t>(result.staleness_max + 2, result.staleness.size());
    for (size_t place = 0; place < places; ++place) {
      late.points.push_back(
          {static_cast<double>(place), static_cast<double>(result.staleness[place]) / pushes});
    }
    PlotSeries& uplinks = traffic.series.emplace_back();
    uplinks.name = Title(result);
    const double seconds = absl::ToDoubleSeconds(result.elapsed);
    for (size_t rack = 0; rack < result.uplink_bytes.size(); ++rack) {
      uplinks.points.push_back(
          {static_cast<double>(rack), result.uplink_bytes[rack] / seconds / (1 << 20)});
    }
  }
  return absl::StrCat("<div class=\"plots\">\n", RenderPlot(efficiency), RenderPlot(throughput),
                      RenderPlot(staleness), RenderPlot(traffic), "</div>\n");
}

std::string TimeText(const TimeShares& shares) {
  return absl::StrCat(Percent(shares.compute), " computing, ", Percent(shares.members),
                      " waiting for members, ", Percent(shares.collectives), " in collectives, ",
                      Percent(shares.servers), " waiting for servers");
}

}  // namespace

std::string SimulationText(const SimulateOptions& options,
                           const std::vector<ClusterResult>& results) {
  TextTable table({"groups", "members", "collective", "steps/s", "samples/s", "efficiency",
                   "compute", "members wait", "collectives", "servers", "staleness", "max",
                   "uplink/step"});
  for (const ClusterResult& result : results) {
    table.Add({absl::StrCat(result.groups), absl::StrCat(result.members),
               AlgorithmName(result.algorithm), ShowNumber(result.steps_per_second),
               ShowNumber(result.samples_per_second), Percent(result.efficiency),
               Percent(result.shares.compute), Percent(result.shares.members),
               Percent(result.shares.collectives), Percent(result.shares.servers),
               absl::StrFormat("%.2f", result.staleness_mean), absl::StrCat(result.staleness_max),
               ShowBytes(static_cast<uint64_t>(result.uplink_bytes_per_step))});
  }
  std::string text = absl::StrCat(Summary(options), "\n\n", table.Render());
  for (const ClusterResult& result : results) {
    if (result.decisions.empty() && result.steps_aside == 0 && result.discarded == 0) continue;
    absl::StrAppend(&text, "\n", Title(result), ": ", Counted(result.decisions.size(), "decision"),
                    " about stragglers, ", ShowCount(result.steps_aside), " gradients left out, ",
                    ShowCount(result.discarded), " pushes too stale\n");
    for (size_t i = 0; i < std::min(result.decisions.size(), kDecisionsShown); ++i) {
      const auto& [when, decision] = result.decisions[i];
      absl::StrAppend(&text, absl::StrFormat("%9.1f s  ", absl::ToDoubleSeconds(when)), decision,
                      "\n");
    }
    if (result.decisions.size() > kDecisionsShown) {
      absl::StrAppend(&text, "           ", result.decisions.size() - kDecisionsShown,
                      " more with -o json\n");
    }
  }
  return text;
}

std::string SimulationJson(const SimulateOptions& options,
                           const std::vector<ClusterResult>& results) {
  SimulateOptions shown = options;
  ConfigFile file("covey simulate", "");
  shown.AddTo(file);
  nlohmann::ordered_json asked = nlohmann::ordered_json::object();
  for (const auto& [name, value] : file.Values()) asked[name] = value;
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const ClusterResult& result : results) all.push_back(ResultAsJson(result));
  return nlohmann::ordered_json(
             {{"summary", Summary(options)}, {"options", asked}, {"results", all}})
             .dump(1) +
         "\n";
}

std::string SimulationPage(const SimulateOptions& options,
                           const std::vector<ClusterResult>& results) {
  const ClusterResult& best = Best(results);
  std::string content = RenderTiles(
      {{"best number of groups", absl::StrCat(best.groups)},
       {"efficiency", Percent(best.efficiency)},
       {"samples per second", ShowNumber(best.samples_per_second)},
       {"steps per second", ShowNumber(best.steps_per_second)},
       {"mean staleness", ShowNumber(best.staleness_mean)},
       {"momentum that asynchrony adds", ShowNumber(ImplicitMomentum(best.staleness_mean))}});
  absl::StrAppend(&content, "<h2>Curves</h2>\n", Plots(results));
  PageRows times;
  PageRows decisions;
  for (const ClusterResult& result : results) {
    times.emplace_back(Title(result), TimeText(result.shares));
    for (const auto& [when, text] : result.decisions) {
      decisions.emplace_back(
          absl::StrCat(Title(result), ", ", ShowSeconds(absl::ToDoubleSeconds(when))), text);
    }
  }
  absl::StrAppend(&content, "<h2>Where the time goes</h2>\n", RenderRows(times));
  if (!decisions.empty()) {
    absl::StrAppend(&content, "<h2>Decisions about stragglers</h2>\n", RenderRows(decisions));
  }
  SimulateOptions shown = options;
  ConfigFile file("covey simulate", "");
  shown.AddTo(file);
  PageRows values;
  for (const auto& [name, value] : file.Values()) values.emplace_back(name, value);
  absl::StrAppend(&content, "<h2>Configuration</h2>\n", RenderRows(values));
  return RenderPage(
      {.title = "covey simulate", .outcome = Summary(options), .content = std::move(content)});
}

}  // namespace covey::cli
