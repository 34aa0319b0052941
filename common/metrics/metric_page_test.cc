// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/metric_page.h"

#include <cmath>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace covey {
namespace {

TEST(MetricPageTest, WritesPrometheusText) {
  MetricPage page;
  page.Counter("covey_things_total", "Things so far.", 3, {{"kind", "a\"\n"}});
  page.Gauge("covey_depth", "Depth.", 0.5);
  page.Counter("covey_things_total", "Ignored.", 0, {{"kind", "b"}});
  page.Counter("covey_things_total", "Ignored.", 4, {{"kind", "a\"\n"}});
  EXPECT_EQ(page.Text(),
            "# HELP covey_things_total Things so far.\n"
            "# TYPE covey_things_total counter\n"
            "covey_things_total{kind=\"a\\\"\\n\"} 7\n"
            "covey_things_total{kind=\"b\"} 0\n"
            "# HELP covey_depth Depth.\n"
            "# TYPE covey_depth gauge\n"
            "covey_depth 0.5\n");
}

// Histograms of several loops are one series; a duration belongs to the bound that it equals.
TEST(MetricPageTest, WritesHistogramsAddedUp) {
  constexpr absl::Duration kBounds[] = {absl::Milliseconds(500), absl::Seconds(2)};
  DurationHistogram one(kBounds), other(kBounds);
  one.Record(absl::Milliseconds(500));
  one.Record(absl::Seconds(1));
  one.Record(absl::Seconds(-1));
  other.Record(absl::Seconds(2));
  other.Record(absl::Seconds(3));
  MetricPage page;
  page.Histogram("covey_wait_seconds", "Waits.", one);
  page.Histogram("covey_wait_seconds", "Waits.", other);
  EXPECT_EQ(page.Text(),
            "# HELP covey_wait_seconds Waits.\n"
            "# TYPE covey_wait_seconds histogram\n"
            "covey_wait_seconds_count 5\n"
            "covey_wait_seconds_sum 6.5\n"
            "covey_wait_seconds_bucket{le=\"0.5\"} 2\n"
            "covey_wait_seconds_bucket{le=\"2\"} 4\n"
            "covey_wait_seconds_bucket{le=\"+Inf\"} 5\n");
}

// As Prometheus reads them: a loss may be either.
TEST(MetricPageTest, WritesWhatIsNoNumber) {
  MetricPage page;
  page.Gauge("covey_loss", "Loss.", std::nan(""));
  page.Gauge("covey_depth", "Depth.", std::numeric_limits<double>::infinity());
  EXPECT_NE(page.Text().find("\ncovey_loss Nan\n"), std::string::npos) << page.Text();
  EXPECT_NE(page.Text().find("\ncovey_depth +Inf\n"), std::string::npos) << page.Text();
}

TEST(MetricPageTest, LabelsAreLimited) {
  LabelLimit tables(2);
  EXPECT_EQ(tables.LabelOf("a"), "a");
  EXPECT_EQ(tables.LabelOf("b"), "b");
  EXPECT_EQ(tables.LabelOf("c"), LabelLimit::kOther);
  EXPECT_EQ(tables.LabelOf("a"), "a");
}

}  // namespace
}  // namespace covey
