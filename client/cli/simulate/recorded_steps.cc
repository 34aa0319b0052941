// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/recorded_steps.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey::cli {
namespace {

// A year; longer steps are refused.
constexpr double kSecondsMax = 366.0 * 24 * 3600;

struct Record {
  uint64_t worker = 0;
  uint64_t step = 0;
  double seconds = 0;
};

absl::StatusOr<Record> ParseRecord(absl::string_view line) {
  const auto json = nlohmann::json::parse(line.begin(), line.end(), nullptr, false);
  const auto whole = [&json](const char* key) {
    return json.contains(key) && json[key].is_number_unsigned();
  };
  if (!json.is_object() || !whole("worker") || !whole("step") ||
      !json.contains("compute_seconds") || !json["compute_seconds"].is_number()) {
    return absl::InvalidArgumentError(
        R"(not of the form {"worker": 0, "step": 1, "compute_seconds": 0.012})");
  }
  const Record record = {.worker = json["worker"].get<uint64_t>(),
                         .step = json["step"].get<uint64_t>(),
                         .seconds = json["compute_seconds"].get<double>()};
  if (record.worker >= kNodesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("worker is ", record.worker, ", but there are at most ", kNodesMax));
  }
  if (!(record.seconds >= 0 && record.seconds <= kSecondsMax)) {
    return absl::InvalidArgumentError(
        absl::StrCat("compute_seconds is ", record.seconds, ", which is not a step time"));
  }
  return record;
}

}  // namespace

double RecordedSteps::MeanSeconds() const {
  double sum = 0;
  size_t count = 0;
  for (const std::vector<double>& worker : workers) {
    for (const double seconds : worker) sum += seconds;
    count += worker.size();
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

absl::StatusOr<RecordedSteps> ParseRecordedSteps(absl::string_view text) {
  std::map<uint64_t, std::map<uint64_t, double>> workers;
  size_t number = 0;
  size_t count = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    if (absl::StripAsciiWhitespace(line).empty()) continue;
    const absl::StatusOr<Record> record = ParseRecord(line);
    if (!record.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": ", record.status().message()));
    }
    if (++count > kRecordedStepsMax) {
      return absl::ResourceExhaustedError(
          absl::StrCat("line ", number, ": more than ", kRecordedStepsMax, " steps; cut the file"));
    }
    if (!workers[record->worker].emplace(record->step, record->seconds).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("line ", number, ": step ", record->step, " of worker ", record->worker,
                       " occurs twice; are there two runs in the file?"));
    }
  }
  if (workers.empty()) return absl::InvalidArgumentError("the file has no steps");
  RecordedSteps recorded;
  for (const auto& [worker, steps] : workers) {
    std::vector<double>& seconds = recorded.workers.emplace_back();
    for (const auto& [step, value] : steps) seconds.push_back(value);
  }
  return recorded;
}

}  // namespace covey::cli
