// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/metric_page.h"

#include <algorithm>

#include "common/base/check.h"
#include "prometheus/text_serializer.h"

namespace covey {

void MetricPage::Counter(absl::string_view name, absl::string_view help, double value,
                         const Labels& labels) {
  Value(prometheus::MetricType::Counter, name, help, labels) += value;
}

void MetricPage::Gauge(absl::string_view name, absl::string_view help, double value,
                       const Labels& labels) {
  Value(prometheus::MetricType::Gauge, name, help, labels) += value;
}

double& MetricPage::Value(prometheus::MetricType type, absl::string_view name,
                          absl::string_view help, const Labels& labels) {
  const auto [place, is_new] = places_.try_emplace(std::string(name), families_.size());
  if (is_new) {
    families_.push_back({.name = std::string(name), .help = std::string(help), .type = type});
  }
  prometheus::MetricFamily& family = families_[place->second];
  COVEY_CHECK(family.type == type);
  std::vector<prometheus::ClientMetric::Label> wanted;
  for (const auto& [key, value] : labels) wanted.push_back({.name = key, .value = value});
  auto series =
      std::find_if(family.metric.begin(), family.metric.end(),
                   [&](const prometheus::ClientMetric& metric) { return metric.label == wanted; });
  if (series == family.metric.end()) {
    series = family.metric.emplace(series);
    series->label = std::move(wanted);
  }
  return type == prometheus::MetricType::Counter ? series->counter.value : series->gauge.value;
}

std::string MetricPage::Text() const { return prometheus::TextSerializer().Serialize(families_); }

std::string LabelLimit::LabelOf(absl::string_view name) {
  std::string text(name);
  if (known_.contains(text)) return text;
  if (known_.size() >= limit_) return kOther;
  known_.insert(text);
  return text;
}

}  // namespace covey
