// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/bench_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace covey::cli {
namespace {

using ::testing::ElementsAre;

absl::Status Load(BenchOptions& options, const std::vector<std::string>& arguments) {
  ConfigFile file("covey bench", "");
  options.AddTo(file);
  return file.Load(arguments, [](const char*) -> const char* { return nullptr; }).status();
}

TEST(BenchOptionsTest, ItsOwnArgumentsSayTheSame) {
  BenchOptions given, passed_on;
  ASSERT_TRUE(
      Load(given, {"--sizes", "64,3MiB", "--repetitions", "9", "--duration", "50ms",
                   "--round-trips", "7", "--replicas", "1,2", "--limits=false", "--members", "3",
                   "--algorithms", "ring,tree", "--memory-bytes", "8KiB", "--quiet-wait", "0"})
          .ok());
  ASSERT_TRUE(Load(passed_on, given.MeasuringArguments()).ok());
  EXPECT_THAT(passed_on.sizes, ElementsAre(64, 3 << 20));
  EXPECT_EQ(passed_on.repetitions, 9);
  EXPECT_EQ(passed_on.duration, absl::Milliseconds(50));
  EXPECT_EQ(passed_on.round_trips, 7);
  EXPECT_THAT(passed_on.replicas, ElementsAre(1, 2));
  EXPECT_FALSE(passed_on.limits);
  EXPECT_THAT(passed_on.members, ElementsAre(3));
  EXPECT_THAT(passed_on.algorithms, ElementsAre("ring", "tree"));
  EXPECT_EQ(passed_on.memory_bytes, 8u << 10);
  EXPECT_EQ(passed_on.quiet_wait, absl::ZeroDuration());
  EXPECT_EQ(passed_on.MeasuringArguments(), given.MeasuringArguments());
}

TEST(BenchOptionsTest, TheDefaultsAreValid) {
  const BenchOptions options;
  EXPECT_TRUE(options.Validate().ok());
  EXPECT_GE(options.repetitions, 7);
  EXPECT_EQ(BlockNames(options.blocks), "memory,latency,rates");
}

TEST(BenchOptionsTest, RefusesWhatCannotBeMeasured) {
  for (const char* flag :
       {"--sizes=3", "--sizes=2GiB", "--transport=pigeon", "--replicas=0", "--members=1",
        "--algorithms=magic", "--blocks=nothing", "--tolerance=all"}) {
    BenchOptions options;
    EXPECT_FALSE(Load(options, {flag}).ok()) << flag;
  }
  for (const char* flag : {"--repetitions=0", "--round-trips=0", "--memory-bytes=5"}) {
    BenchOptions options;
    EXPECT_TRUE(Load(options, {flag}).ok()) << flag;
    EXPECT_FALSE(options.Validate().ok()) << flag;
  }
}

TEST(ToleranceTest, IsAPartOfOne) {
  double tolerance = 0;
  EXPECT_TRUE(ParseTolerance("3%", tolerance).ok());
  EXPECT_EQ(tolerance, 0.03);
  EXPECT_TRUE(ParseTolerance("0.1", tolerance).ok());
  EXPECT_EQ(tolerance, 0.1);
  for (const char* text : {"", "x", "100%", "-1%", "nan", "1"}) {
    EXPECT_FALSE(ParseTolerance(text, tolerance).ok()) << text;
  }
}

}  // namespace
}  // namespace covey::cli
