// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/strings/string_view.h"
#include "common/metrics/duration_histogram.h"
#include "prometheus/metric_family.h"

namespace covey {

// The metrics of one moment, as Prometheus reads them. Loops count in plain integers of their own;
// a page is filled from these when somebody asks for it.
//
// A counter's name ends with _total, and its value never falls while the process lives. The values
// of a label come from an enum, or from a list with a limit (LabelLimit). Not thread-safe.
class MetricPage {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  // Adds a series; a second value of the same series is added to the first one. The help of a
  // metric is that of its first series. Precondition: a name has one type.
  void Counter(absl::string_view name, absl::string_view help, double value,
               const Labels& labels = {});
  void Gauge(absl::string_view name, absl::string_view help, double value,
             const Labels& labels = {});
  // In seconds. Precondition: the histograms of a series have the same bounds.
  void Histogram(absl::string_view name, absl::string_view help, const DurationHistogram& durations,
                 const Labels& labels = {});

  // Prometheus's text format 0.0.4, metrics in the order in which they were added.
  std::string Text() const;
  static constexpr char kContentType[] = "text/plain; version=0.0.4; charset=utf-8";

 private:
  // Made when it is not there yet.
  prometheus::ClientMetric& Series(prometheus::MetricType type, absl::string_view name,
                                   absl::string_view help, const Labels& labels);

  std::vector<prometheus::MetricFamily> families_;
  absl::btree_map<std::string, size_t> places_;  // of a name in families_
};

// Names that become label values: the first `limit` different ones; all others are "_other". Of the
// values of "_other" only the sum is known. Not thread-safe.
class LabelLimit {
 public:
  static constexpr char kOther[] = "_other";

  explicit LabelLimit(size_t limit) : limit_(limit) {}

  std::string LabelOf(absl::string_view name);

 private:
  const size_t limit_;
  absl::btree_set<std::string> known_;
};

}  // namespace covey
