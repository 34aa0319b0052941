// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/simulate_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace covey::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::Status Load(SimulateOptions& options, const std::vector<std::string>& arguments) {
  ConfigFile file("covey simulate", "");
  options.AddTo(file);
  const auto outcome = file.Load(arguments, [](const char*) -> const char* { return nullptr; });
  if (!outcome.ok()) return outcome.status();
  return options.Finish();
}

TEST(SimulateOptionsTest, FlagsBecomeACluster) {
  SimulateOptions options;
  ASSERT_TRUE(Load(options, {"--nodes=64", "--groups=0,4", "--contract=ssp:3", "--link-gbps=8",
                             "--gradient-mib=0.5", "--straggler=3:4,5:1.5", "--detail=model",
                             "--stragglers=regroup", "--collective=tree", "--latency-us=7.5"})
                  .ok());
  EXPECT_THAT(options.groups, ElementsAre(0, 4));
  EXPECT_EQ(options.cluster.contract.staleness, 3u);
  EXPECT_EQ(options.cluster.gradient_bytes, 512u << 10);
  EXPECT_DOUBLE_EQ(options.cluster.links.node_bytes_per_second, 1e9);
  EXPECT_EQ(options.cluster.links.rack_latency, absl::Nanoseconds(7500));
  EXPECT_THAT(options.cluster.step_times.slow_nodes, ElementsAre(SlowNode{3, 4}, SlowNode{5, 1.5}));
  EXPECT_EQ(options.cluster.detail, Detail::kModel);
  EXPECT_EQ(options.cluster.ladder, StragglerRung::kRegroup);
  EXPECT_EQ(options.cluster.collective, Algorithm::kTree);
}

TEST(SimulateOptionsTest, MistakesAreNamed) {
  const auto mistake = [](const std::vector<std::string>& arguments) {
    SimulateOptions options;
    return std::string(Load(options, arguments).message());
  };
  EXPECT_THAT(mistake({"--nodes=0"}), HasSubstr("--nodes is 0; choose 1 to"));
  EXPECT_THAT(mistake({"--groups=17"}), HasSubstr("there are only 16 nodes"));
  EXPECT_THAT(mistake({"--groups=1,x"}), HasSubstr("not a list of numbers"));
  EXPECT_THAT(mistake({"--servers=0", "--groups=2"}), HasSubstr("without servers"));
  EXPECT_THAT(mistake({"--straggler=16:2"}), HasSubstr("the last rank is 15"));
  EXPECT_THAT(mistake({"--straggler=1"}), HasSubstr("RANK:FACTOR"));
  EXPECT_THAT(mistake({"--step-noise=-1"}), HasSubstr("--step-noise"));
  EXPECT_THAT(mistake({"--link-gbps=0"}), HasSubstr("--link-gbps"));
  EXPECT_THAT(mistake({"--link-gbps=nan"}), HasSubstr(""));
  EXPECT_THAT(mistake({"--detail=messages", "--nodes=2000"}), HasSubstr("choose model"));
  EXPECT_THAT(mistake({"--preset=cray"}), HasSubstr("choose none, cori or ssp"));
  EXPECT_THAT(mistake({"--latency-us=1"}), HasSubstr("--latency-us"));
}

TEST(SimulateOptionsTest, EveryPresetIsValid) {
  for (const absl::string_view name : {"none", "cori", "ssp"}) {
    auto options = PresetOptions(name);
    ASSERT_TRUE(options.ok());
    EXPECT_EQ(options->preset, name);
    EXPECT_TRUE(options->Finish().ok()) << options->Finish();
  }
}

}  // namespace
}  // namespace covey::cli
