// SPDX-License-Identifier: Apache-2.0
#include "client/cli/replay/what_if.h"

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <span>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_table.h"
#include "common/base/status_macros.h"
#include "common/optimizer/optimizer.h"

namespace covey::cli {
namespace {

using nlohmann::ordered_json;

absl::Status SetKind(absl::string_view name, OptimizerConfig& config) {
  std::string names;
  for (int i = 0; i <= static_cast<int>(OptimizerKind::kDelayedNesterov); ++i) {
    config.kind = static_cast<OptimizerKind>(i);
    if (OptimizerName(config.kind) == name) return absl::OkStatus();
    absl::StrAppend(&names, i == 0 ? "" : ", ", OptimizerName(config.kind));
  }
  return absl::InvalidArgumentError(absl::StrCat("'", name, "' is no optimizer; choose ", names));
}

absl::Status SetField(absl::string_view name, double value, OptimizerConfig& config,
                      std::optional<double>& base_rate) {
  const std::map<absl::string_view, double*> fields = {
      {"beta1", &config.beta1},
      {"beta2", &config.beta2},
      {"epsilon", &config.epsilon},
      {"momentum", &config.momentum},
      {"trust_coefficient", &config.trust_coefficient},
      {"weight_decay", &config.weight_decay}};
  if (const auto field = fields.find(name); field != fields.end()) {
    *field->second = value;
  } else if (name == "delay" && value >= 1 && value <= kDelayMax) {
    config.delay = static_cast<uint32_t>(value);
  } else if (name == "lr") {
    base_rate = value;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name,
                     "' is no field; choose lr, momentum, beta1, beta2, epsilon, "
                     "weight_decay, trust_coefficient, or delay from 1 to ",
                     kDelayMax));
  }
  return absl::OkStatus();
}

std::string Caveat(const server::WhatIf& what_if) {
  if (what_if.contract) {
    return absl::StrCat("the same arrivals under ", ContractName(*what_if.contract),
                        ": workers would have waited elsewhere, and pushed in another order");
  }
  return "the gradients are those of the recorded values; workers would have computed others";
}

}  // namespace

absl::Status ParseOptimizer(absl::string_view text, server::WhatIf& what_if) {
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(text, absl::MaxSplits(':', 1));
  OptimizerConfig config;
  std::optional<double> base_rate;
  COVEY_RETURN_IF_ERROR(SetKind(parts.first, config));
  for (const absl::string_view part : absl::StrSplit(parts.second, ',', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> field =
        absl::StrSplit(part, absl::MaxSplits('=', 1));
    double value = 0;
    if (!absl::SimpleAtod(field.second, &value)) {
      return absl::InvalidArgumentError(absl::StrCat("'", part, "' is not FIELD=NUMBER"));
    }
    COVEY_RETURN_IF_ERROR(SetField(field.first, value, config, base_rate));
  }
  COVEY_RETURN_IF_ERROR(config.Validate());
  what_if.optimizer = config;
  if (base_rate) what_if.base_rate = base_rate;
  return absl::OkStatus();
}

std::string OptimizerText(const server::WhatIf& what_if) {
  return what_if.optimizer ? std::string(OptimizerName(what_if.optimizer->kind)) : "";
}

void TableDistance::Add(const server::ReplayedShard& as_recorded,
                        const server::ReplayedShard& under_what_if) {
  recorded_updates += as_recorded.updates;
  updates += under_what_if.updates;
  const std::span<const float> before = as_recorded.values.As<float>();
  const std::span<const float> after = under_what_if.values.As<float>();
  for (size_t i = 0; i < before.size(); ++i) {
    const double a = before[i], b = after[i];
    recorded += a * a;
    changed += b * b;
    difference += (a - b) * (a - b);
  }
}

std::string DistanceText(const std::vector<TableDistance>& tables, const server::WhatIf& what_if) {
  TextTable text({"TABLE", "UPDATES", "RECORDED", "NORM", "RECORDED", "DISTANCE"});
  for (const TableDistance& table : tables) {
    text.Add({table.name, ShowCount(table.updates), ShowCount(table.recorded_updates),
              ShowNumber(std::sqrt(table.changed)), ShowNumber(std::sqrt(table.recorded)),
              ShowNumber(std::sqrt(table.difference))});
  }
  return absl::StrCat(text.Render(), Caveat(what_if), "\n");
}

std::string DistanceJson(const std::vector<TableDistance>& tables, const server::WhatIf& what_if) {
  ordered_json json = {{"caveat", Caveat(what_if)}, {"tables", ordered_json::array()}};
  for (const TableDistance& table : tables) {
    json["tables"].push_back({{"name", table.name},
                              {"updates", table.updates},
                              {"recorded_updates", table.recorded_updates},
                              {"norm", std::sqrt(table.changed)},
                              {"recorded_norm", std::sqrt(table.recorded)},
                              {"distance", std::sqrt(table.difference)}});
  }
  return json.dump(2) + "\n";
}

}  // namespace covey::cli
