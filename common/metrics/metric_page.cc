// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/metric_page.h"

#include <algorithm>

#include "common/base/check.h"
#include "prometheus/text_serializer.h"

namespace covey {

void MetricPage::Counter(absl::string_view name, absl::string_view help, double value,
                         const Labels& labels) {
  Series(prometheus::MetricType::Counter, name, help, labels).counter.value += value;
}

void MetricPage::Gauge(absl::string_view name, absl::string_view help, double value,
                       const Labels& labels) {
  Series(prometheus::MetricType::Gauge, name, help, labels).gauge.value += value;
}

void MetricPage::Histogram(absl::string_view name, absl::string_view help,
                           const DurationHistogram& durations, const Labels& labels) {
  prometheus::ClientMetric::Histogram& sum =
      Series(prometheus::MetricType::Histogram, name, help, labels).histogram;
  const DurationHistogram::Bounds bounds = durations.bounds();
  if (sum.bucket.empty()) {
    for (const absl::Duration bound : bounds) {
      sum.bucket.push_back({.upper_bound = absl::ToDoubleSeconds(bound)});
    }
  }
  COVEY_CHECK(sum.bucket.size() == bounds.size());
  uint64_t count = 0;
  for (size_t i = 0; i < bounds.size(); ++i) {
    COVEY_CHECK(sum.bucket[i].upper_bound == absl::ToDoubleSeconds(bounds[i]));
    count += durations.counts()[i];
    sum.bucket[i].cumulative_count += count;
  }
  sum.sample_count += count + durations.counts().back();
  sum.sample_sum += absl::ToDoubleSeconds(durations.sum());
}

prometheus::ClientMetric& MetricPage::Series(prometheus::MetricType type, absl::string_view name,
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
  return *series;
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
