// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/guard.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/bench/bench_result.h"
#include "client/cli/bench/peers/program_output.h"
#include "client/cli/console/text_table.h"
#include "client/cli/run/plan/binaries.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

using Key = std::tuple<std::string, std::string, uint64_t>;
using Verdict = Comparison::Verdict;

constexpr char kOwn[] = "covey ";

Key KeyOf(const Figure& figure) { return {figure.what, figure.transport, figure.bytes}; }

bool IsCompared(const Figure& figure) {
  return absl::StartsWith(figure.what, kOwn) && !absl::StrContains(figure.what, " p99");
}

// The medians of the runs, for each figure that all runs have.
std::map<Key, std::vector<double>> MediansOf(const std::vector<std::vector<Figure>>& runs) {
  std::map<Key, std::vector<double>> medians;
  for (const std::vector<Figure>& run : runs) {
    for (const Figure& figure : run) medians[KeyOf(figure)].push_back(figure.Median());
  }
  std::erase_if(medians, [&](const auto& entry) { return entry.second.size() != runs.size(); });
  return medians;
}

Verdict Judge(const Interval& interval, double tolerance) {
  if (interval.high < 1 - tolerance) return Verdict::kSlower;
  return interval.low >= 1 - tolerance ? Verdict::kNotSlower : Verdict::kUnclear;
}

// A build of covey that is measured.
struct Build {
  std::string path;
  // The output of its `bench --help`.
  std::string help;

  bool Knows(absl::string_view flag) const { return absl::StrContains(help, flag); }
};

absl::StatusOr<Build> FindBuild(const std::string& path) {
  Build build = {.path = path};
  COVEY_ASSIGN_OR_RETURN(build.help, OutputOf({path, "bench", "--help"}));
  return build;
}

absl::StatusOr<std::vector<Figure>> RunOnce(const Build& build, const BenchOptions& options) {
  BenchOptions once = options;
  once.repetitions = 1;
  once.limits = false;
  std::vector<std::string> arguments = {
      build.path, "bench", "--transport", absl::StrJoin(options.transports, ","), "-o", "json"};
  std::vector<std::string> candidates = once.MeasuringArguments();
  candidates.insert(candidates.end(), {"--blocks", BlockNames(options.blocks)});
  for (size_t i = 0; i < candidates.size(); ++i) {
    // "--flag=value" is one argument, "--flag" "value" are two.
    const bool is_pair = !absl::StrContains(candidates[i], '=');
    const std::string flag = candidates[i].substr(0, candidates[i].find('='));
    if (build.Knows(flag)) {
      arguments.push_back(candidates[i]);
      if (is_pair) arguments.push_back(candidates[i + 1]);
    }
    if (is_pair) ++i;
  }
  COVEY_ASSIGN_OR_RETURN(const std::string json, OutputOf(arguments));
  COVEY_ASSIGN_OR_RETURN(BenchResult result, ResultFromJson(json));
  return std::move(result.figures);
}

}  // namespace

const char* VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSlower:
      return "slower";
    case Verdict::kNotSlower:
      return "not slower";
    case Verdict::kUnclear:
      return "unclear";
  }
  return "";
}

std::vector<Comparison> Compare(const std::vector<std::vector<Figure>>& ours,
                                const std::vector<std::vector<Figure>>& other, double tolerance) {
  std::vector<Comparison> rows;
  if (ours.empty() || ours.size() != other.size()) return rows;
  const std::map<Key, std::vector<double>> our_medians = MediansOf(ours);
  const std::map<Key, std::vector<double>> other_medians = MediansOf(other);
  for (const Figure& figure : ours[0]) {
    const auto left = our_medians.find(KeyOf(figure));
    const auto right = other_medians.find(KeyOf(figure));
    if (!IsCompared(figure) || left == our_medians.end() || right == other_medians.end()) continue;
    const bool is_time = figure.unit == "us";
    const std::vector<double> speeds = is_time ? RatioPerRepetition(right->second, left->second)
                                               : RatioPerRepetition(left->second, right->second);
    Comparison row = {.figure = figure,
                      .ours = Quantile(left->second, 0.5),
                      .other = Quantile(right->second, 0.5),
                      .ratio = Quantile(speeds, 0.5),
                      .interval = MedianInterval(speeds)};
    row.verdict = Judge(row.interval, tolerance);
    rows.push_back(std::move(row));
  }
  return rows;
}

bool HasSlower(const std::vector<Comparison>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [](const Comparison& row) { return row.verdict == Verdict::kSlower; });
}

std::string ComparisonsAsTable(const std::vector<Comparison>& rows) {
  TextTable table({"what", "transport", "bytes", "this", "other", "unit", "speed ratio", "interval",
                   "verdict"});
  for (const Comparison& row : rows) {
    table.Add({row.figure.what, row.figure.transport, absl::StrCat(row.figure.bytes),
               absl::StrFormat("%.3f", row.ours), absl::StrFormat("%.3f", row.other),
               row.figure.unit, absl::StrFormat("%.3f", row.ratio),
               absl::StrFormat("(%.3f..%.3f)", row.interval.low, row.interval.high),
               VerdictName(row.verdict)});
  }
  return table.Render();
}

std::string ComparisonsAsJson(const std::vector<Comparison>& rows, const BenchOptions& options) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Comparison& row : rows) {
    list.push_back({{"what", row.figure.what},
                    {"transport", row.figure.transport},
                    {"bytes", row.figure.bytes},
                    {"unit", row.figure.unit},
                    {"this", row.ours},
                    {"other", row.other},
                    {"speed_ratio", row.ratio},
                    {"low", row.interval.low},
                    {"high", row.interval.high},
                    {"verdict", VerdictName(row.verdict)}});
  }
  return nlohmann::ordered_json({{"against", options.against},
                                 {"tolerance", options.tolerance},
                                 {"slower", HasSlower(rows)},
                                 {"rows", std::move(list)}})
      .dump(1);
}

absl::StatusOr<std::vector<Comparison>> CompareBuilds(const BenchOptions& options,
                                                      Terminal& terminal) {
  COVEY_ASSIGN_OR_RETURN(const Build own, FindBuild(OwnPath()));
  COVEY_ASSIGN_OR_RETURN(const Build other, FindBuild(options.against));
  std::vector<std::vector<Figure>> our_runs, other_runs;
  for (int repetition = 0; repetition < options.repetitions; ++repetition) {
    terminal.Print(Terminal::Stream::kError, absl::StrCat("comparing: repetition ", repetition + 1,
                                                          " of ", options.repetitions, " …"));
    const bool own_first = repetition % 2 == 0;
    COVEY_ASSIGN_OR_RETURN(auto first, RunOnce(own_first ? own : other, options));
    COVEY_ASSIGN_OR_RETURN(auto second, RunOnce(own_first ? other : own, options));
    our_runs.push_back(std::move(own_first ? first : second));
    other_runs.push_back(std::move(own_first ? second : first));
  }
  std::vector<Comparison> rows = Compare(our_runs, other_runs, options.tolerance);
  if (rows.empty())
    return absl::FailedPreconditionError("the two builds measure nothing in common");
  return rows;
}

}  // namespace covey::cli
