// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/scaling/scaling.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/cli/bench/measure/statistics.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_table.h"
#include "common/base/plural.h"

namespace covey::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kBatch[] = "{batch}";
constexpr char kWorkerBatch[] = "{worker_batch}";

double Median(const ScalingRow& row) { return Quantile(row.repetitions, 0.5); }

double Speedup(const ScalingRow& row, const ScalingRow& baseline) {
  return Median(row) / Median(baseline);
}

double Efficiency(const ScalingRow& row, const ScalingRow& baseline) {
  return Speedup(row, baseline) * baseline.workers / row.workers;
}

}  // namespace

const char* NameOf(ScalingPlan::Kind kind) {
  return kind == ScalingPlan::Kind::kWeak ? "weak" : "strong";
}

absl::Status ScalingPlan::Validate() const {
  if (program.empty()) {
    return absl::InvalidArgumentError(
        "no program; name it behind --, with {batch} or {worker_batch} in its arguments: "
        "-- synthetic --group-batch {batch}");
  }
  const bool is_told = std::any_of(program.begin() + 1, program.end(), [](const auto& argument) {
    return absl::StrContains(argument, kBatch) || absl::StrContains(argument, kWorkerBatch);
  });
  if (!is_told) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no argument of ", program[0],
        " says how many samples a step has; write {batch} for those of all workers, or "
        "{worker_batch} for those of each"));
  }
  if (workers.empty() ||
      std::adjacent_find(workers.begin(), workers.end(), std::greater_equal<>()) != workers.end()) {
    return absl::InvalidArgumentError(absl::StrCat("--workers is ", absl::StrJoin(workers, ","),
                                                   "; choose growing numbers: 1,2,4"));
  }
  if (batch == 0 || batch > std::numeric_limits<uint64_t>::max() / workers.back()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--batch is ", batch, "; choose 1 or more, with which ", workers.back(),
                     " workers have fewer than 2^64 samples together"));
  }
  for (const uint32_t count : workers) {
    if (kind == Kind::kStrong && (batch < count || batch % count != 0)) {
      return absl::InvalidArgumentError(absl::StrCat("--batch is ", batch, ", which ", count,
                                                     " workers cannot divide evenly; choose a "
                                                     "multiple of each number of --workers"));
    }
  }
  return absl::OkStatus();
}

uint64_t ScalingPlan::BatchOf(uint32_t count) const {
  return kind == Kind::kWeak ? batch * count : batch;
}

std::vector<std::string> ScalingPlan::ProgramFor(uint32_t count) const {
  std::vector<std::string> filled = {program[0]};
  for (size_t i = 1; i < program.size(); ++i) {
    filled.push_back(
        absl::StrReplaceAll(program[i], {{kBatch, absl::StrCat(BatchOf(count))},
                                         {kWorkerBatch, absl::StrCat(BatchOf(count) / count)}}));
  }
  return filled;
}

absl::StatusOr<double> RateIn(const std::string& result) {
  const Json json = Json::parse(result, nullptr, /*allow_exceptions=*/false);
  if (json.is_object() && json.contains("samples_per_second") &&
      json["samples_per_second"].is_number() && json["samples_per_second"].get<double>() > 0) {
    return json["samples_per_second"].get<double>();
  }
  return absl::InvalidArgumentError(
      "the program named no samples_per_second; let one worker print a line "
      "'result {\"samples_per_second\": RATE}'");
}

std::string ScalingAsJson(const ScalingPlan& plan, const std::vector<ScalingRow>& rows,
                          uint32_t cores) {
  const ScalingRow& baseline = rows[0];
  Json json = {
      {"scaling", NameOf(plan.kind)},
      {"program", absl::StrJoin(plan.program, " ")},
      {"cores", cores},
      {"baseline", {{"workers", baseline.workers}, {"samples_per_second", Median(baseline)}}},
      {"rows", Json::array()}};
  for (const ScalingRow& row : rows) {
    json["rows"].push_back({{"workers", row.workers},
                            {"batch", plan.BatchOf(row.workers)},
                            {"samples_per_second", Median(row)},
                            {"speedup", Speedup(row, baseline)},
                            {"efficiency", Efficiency(row, baseline)},
                            {"repetitions", row.repetitions}});
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

std::string ScalingAsTable(const ScalingPlan& plan, const std::vector<ScalingRow>& rows,
                           uint32_t cores) {
  const ScalingRow& baseline = rows[0];
  TextTable table({"workers", "batch", "samples/s", "speed-up", "efficiency"});
  for (const ScalingRow& row : rows) {
    table.Add({absl::StrCat(row.workers), absl::StrCat(plan.BatchOf(row.workers)),
               ShowNumber(Median(row)), absl::StrFormat("%.2f", Speedup(row, baseline)),
               absl::StrFormat("%.2f", Efficiency(row, baseline))});
  }
  std::string text = absl::StrCat(
      table.Render(), NameOf(plan.kind), " scaling; baseline: ", Plural(baseline.workers, "worker"),
      ", ", ShowNumber(Median(baseline)), " samples/s; median of ", baseline.repetitions.size());
  if (rows.back().workers > cores) {
    absl::StrAppend(&text, "\nthis machine has ", Plural(cores, "core"),
                    ", fewer than workers in some runs; their efficiency says little");
  }
  return text;
}

}  // namespace covey::cli
