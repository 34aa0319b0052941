// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/simulate_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace covey::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

ClusterResult ResultOf(uint32_t groups, double efficiency) {
  return {.groups = groups,
          .members = 16 / groups,
          .algorithm = Algorithm::kTree,
          .elapsed = absl::Seconds(10),
          .steps_per_second = 2,
          .samples_per_second = 1234,
          .efficiency = efficiency,
          .shares = {.compute = 0.5, .members = 0.25, .collectives = 0.125, .servers = 0.125},
          .staleness_mean = 3,
          .staleness_max = 4,
          .staleness = {0, 0, 10, 80, 10, 0, 0},
          .uplink_bytes = {1 << 20, 3 << 20},
          .uplink_bytes_per_step = 2 << 20,
          .throughput = {{5, 1234}}};
}

class SimulateReportTest : public testing::Test {
 protected:
  SimulateReportTest() {
    EXPECT_TRUE(options_.Finish().ok());
    results_[1].decisions = {{absl::Seconds(7), "worker-3 <takes> 5 ms"}};
    results_[1].steps_aside = 12;
  }

  SimulateOptions options_;
  std::vector<ClusterResult> results_ = {ResultOf(1, 0.25), ResultOf(4, 0.75)};
};

TEST_F(SimulateReportTest, TextHasALinePerNumberOfGroups) {
  const std::string text = SimulationText(options_, results_);
  EXPECT_THAT(text, HasSubstr("16 nodes in 1 rack, 1 server"));
  EXPECT_THAT(text, HasSubstr("25.0 %"));
  EXPECT_THAT(text, HasSubstr("75.0 %"));
  EXPECT_THAT(text, HasSubstr("2.0 MiB"));
  EXPECT_THAT(text, HasSubstr("4 groups: 1 decision about stragglers, 12 gradients left out"));
  EXPECT_THAT(text, HasSubstr("7.0 s  worker-3 <takes> 5 ms"));
  EXPECT_THAT(text, Not(HasSubstr("1 group:")));
}

TEST_F(SimulateReportTest, JsonHasAllOfIt) {
  const auto json = nlohmann::json::parse(SimulationJson(options_, results_), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["options"]["nodes"], "16");
  ASSERT_EQ(json["results"].size(), 2u);
  const auto& result = json["results"][1];
  EXPECT_EQ(result["groups"], 4);
  EXPECT_EQ(result["collective"], "tree");
  EXPECT_DOUBLE_EQ(result["efficiency"], 0.75);
  EXPECT_DOUBLE_EQ(result["time"]["servers"], 0.125);
  EXPECT_DOUBLE_EQ(result["implicit_momentum"], 0.75);
  EXPECT_EQ(result["staleness_histogram"].size(), 5u);
  EXPECT_EQ(result["uplink_bytes"].size(), 2u);
  EXPECT_EQ(result["decisions"][0]["seconds"], 7.0);
}

TEST_F(SimulateReportTest, ThePageShowsTheBestAndEveryCurve) {
  const std::string page = SimulationPage(options_, results_);
  EXPECT_THAT(page, HasSubstr("<b>75.0 %</b><span>efficiency"));
  for (const char* title : {"Efficiency over groups", "Throughput", "Staleness",
                            "Traffic of the racks&#39; uplinks", "Where the time goes"}) {
    EXPECT_THAT(page, HasSubstr(title));
  }
  EXPECT_THAT(page, HasSubstr("worker-3 &lt;takes&gt; 5 ms"));
  EXPECT_THAT(page, Not(HasSubstr("no data")));
  EXPECT_THAT(page, HasSubstr("gradient-mib"));
}

}  // namespace
}  // namespace covey::cli
