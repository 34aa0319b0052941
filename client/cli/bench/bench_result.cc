// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/bench_result.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/bench/measure/json_fields.h"
#include "common/base/status_macros.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

using nlohmann::ordered_json;

template <typename T>
void Append(std::vector<T>& to, std::vector<T> from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

}  // namespace

void Quietness::Add(const Quietness& other) {
  kept += other.kept;
  rejected += other.rejected;
  noisy += other.noisy;
  foreign_share_max = std::max(foreign_share_max, other.foreign_share_max);
  steal_share_max = std::max(steal_share_max, other.steal_share_max);
  waited_seconds += other.waited_seconds;
}

void BenchResult::Add(BenchResult other) {
  quietness.Add(other.quietness);
  for (std::string& line : other.left_out) {
    if (std::find(left_out.begin(), left_out.end(), line) == left_out.end()) {
      left_out.push_back(std::move(line));
    }
  }
  Append(figures, std::move(other.figures));
}

std::string ResultAsJson(const BenchResult& result, uint32_t servers) {
  ordered_json environment = ordered_json::object();
  for (const auto& [name, value] : result.environment) environment[name] = value;
  const Quietness& quietness = result.quietness;
  return ordered_json({{"cores", UsableCores()},
                       {"clients", 1},
                       {"servers", servers},
                       {"environment", environment},
                       {"quietness",
                        {{"kept", quietness.kept},
                         {"rejected", quietness.rejected},
                         {"noisy", quietness.noisy},
                         {"foreign_share_max", quietness.foreign_share_max},
                         {"steal_share_max", quietness.steal_share_max},
                         {"waited_seconds", quietness.waited_seconds}}},
                       {"left_out", result.left_out},
                       {"figures", ordered_json::parse(FiguresAsJson(result.figures))}})
      .dump(1);
}

absl::StatusOr<BenchResult> ResultFromJson(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("figures")) {
    return absl::InvalidArgumentError("not a result of covey bench");
  }
  BenchResult result;
  COVEY_ASSIGN_OR_RETURN(result.figures, FiguresFromJson(json["figures"].dump()));
  result.left_out = TextsIn(json, "left_out");
  const auto quietness = json.find("quietness");
  if (quietness == json.end() || !quietness->is_object()) return result;
  result.quietness = {.kept = static_cast<uint32_t>(CountIn(*quietness, "kept")),
                      .rejected = static_cast<uint32_t>(CountIn(*quietness, "rejected")),
                      .noisy = static_cast<uint32_t>(CountIn(*quietness, "noisy")),
                      .foreign_share_max = NumberIn(*quietness, "foreign_share_max"),
                      .steal_share_max = NumberIn(*quietness, "steal_share_max"),
                      .waited_seconds = NumberIn(*quietness, "waited_seconds")};
  return result;
}

std::string ResultAsTable(const BenchResult& result) {
  const Quietness& quietness = result.quietness;
  std::string text = FiguresAsTable(result.figures);
  absl::StrAppend(&text, "\n", absl::StrJoin(result.environment, "; ", absl::PairFormatter(": ")),
                  "\n");
  absl::StrAppendFormat(
      &text,
      "%d repetitions kept, %d of them noisy, %d rejected; other programs used at most %.1f %% of "
      "the machine, the hypervisor %.1f %%\n",
      quietness.kept, quietness.noisy, quietness.rejected, 100 * quietness.foreign_share_max,
      100 * quietness.steal_share_max);
  for (const std::string& line : result.left_out) {
    absl::StrAppend(&text, "not measured: ", line, "\n");
  }
  return text;
}

}  // namespace covey::cli
