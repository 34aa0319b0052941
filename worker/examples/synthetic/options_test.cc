// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/synthetic/options.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::synthetic {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

absl::Status Load(const std::vector<std::string>& arguments, Options& options) {
  ConfigFile file("synthetic", "Trains.");
  options.AddTo(file);
  const auto outcome = file.Load(arguments, [](const char*) -> const char* { return nullptr; });
  return outcome.ok() ? options.Validate() : outcome.status();
}

std::string ErrorOf(const std::vector<std::string>& arguments) {
  Options options;
  const absl::Status status = Load(arguments, options);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(OptionsTest, ReadsWhoIsSlowAndWhoHangs) {
  Options options;
  const absl::Status status =
      Load({"--slow", "3:5,1:0.5:20", "--hang=2:7:0.25", "--step-noise", "0.1", "--wire=float16"},
           options);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(options.slow, ElementsAre(Options::Slow{.rank = 3, .factor = 5},
                                        Options::Slow{.rank = 1, .factor = 0.5, .first_step = 20}));
  EXPECT_THAT(options.hangs, ElementsAre(Options::Hang{
                                 .rank = 2, .step = 7, .duration = absl::Milliseconds(250)}));
  EXPECT_EQ(options.step_noise, 0.1);
  EXPECT_EQ(options.wire, WireFormat::kFloat16);
}

TEST(OptionsTest, WhatIsPrintedIsReadAgain) {
  Options options;
  ConfigFile file("synthetic", "Trains.");
  options.AddTo(file);
  const auto nothing = [](const char*) -> const char* { return nullptr; };
  ASSERT_TRUE(file.Load({"--slow", "3:5,1:0.5:20", "--hang=2:7:0.25"}, nothing).ok());
  EXPECT_THAT(file.Print(), HasSubstr("3:5,1:0.5:20"));
  EXPECT_THAT(file.Print(), HasSubstr("2:7:0.25"));
}

TEST(OptionsTest, RefusesWhatMakesNoSense) {
  EXPECT_THAT(ErrorOf({"--tensors", "0"}), HasSubstr("--tensors is 0; choose 1 to 1000"));
  EXPECT_THAT(ErrorOf({"--slow", "3"}), HasSubstr("RANK:FACTOR"));
  EXPECT_THAT(ErrorOf({"--slow", "3:0"}), HasSubstr("RANK:FACTOR"));
  EXPECT_THAT(ErrorOf({"--slow", "3:nan"}), HasSubstr("RANK:FACTOR"));
  EXPECT_THAT(ErrorOf({"--lag", "2"}), HasSubstr("--lag is 2; choose 0 to 1"));
  EXPECT_THAT(ErrorOf({"--bucket-kib", "2000000"}), HasSubstr("--bucket-kib is 2e+06"));
  EXPECT_THAT(ErrorOf({"--hang", "3:5"}), HasSubstr("RANK:STEP:SECONDS"));
  EXPECT_THAT(ErrorOf({"--hang", "3:5:-1"}), HasSubstr("RANK:STEP:SECONDS"));
  EXPECT_THAT(ErrorOf({"--step-noise", "nan"}), HasSubstr("--step-noise"));
  EXPECT_THAT(ErrorOf({"--learning-rate", "2"}), HasSubstr("--learning-rate is 2"));
}

}  // namespace
}  // namespace covey::synthetic
