// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/wordnet/options.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::wordnet {
namespace {

using ::testing::HasSubstr;

const char* NoEnvironment(const char*) { return nullptr; }

absl::Status Load(const std::vector<std::string>& arguments, Options& options) {
  ConfigFile file("wordnet", "Learns.");
  options.AddTo(file);
  const absl::StatusOr<ConfigFile::Outcome> outcome = file.Load(arguments, NoEnvironment);
  return outcome.ok() ? options.Validate() : outcome.status();
}

std::string ErrorOf(const std::vector<std::string>& arguments) {
  Options options;
  const absl::Status status = Load(arguments, options);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  return std::string(status.message());
}

TEST(OptionsTest, DefaultsAreValid) {
  Options options;
  EXPECT_TRUE(Load({}, options).ok());
}

TEST(OptionsTest, ReadsEveryFlag) {
  Options options;
  const absl::Status status =
      Load({"--split=strict", "--evaluate=validation", "--passes=2", "--batch=64", "--negatives=32",
            "--width=16", "--learning-rate=0.2", "--n3=0.5", "--relation-mean=1", "--untrained",
            "--neighbors-min=5", "--held-out=100", "--seed=9", "--data-dir=/data"},
           options);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(options.split, Split::kPairs);
  EXPECT_EQ(options.evaluate, Part::kValidation);
  EXPECT_EQ(options.passes, 2u);
  EXPECT_EQ(options.batch, 64u);
  EXPECT_EQ(options.negatives, 32u);
  EXPECT_EQ(options.width, 16u);
  EXPECT_EQ(options.learning_rate, 0.2);
  EXPECT_EQ(options.n3, 0.5);
  EXPECT_EQ(options.relation_mean, 1);
  EXPECT_TRUE(options.untrained);
  EXPECT_EQ(options.neighbors_min, 5u);
  EXPECT_EQ(options.held_out, 100u);
  EXPECT_EQ(options.seed, 9u);
  EXPECT_EQ(options.data_dir, "/data");
}

TEST(OptionsTest, RefusesWhatIsOutOfRange) {
  EXPECT_THAT(ErrorOf({"--split=rs"}), HasSubstr("choose rr or strict"));
  EXPECT_THAT(ErrorOf({"--evaluate=train"}), HasSubstr("choose test or validation"));
  EXPECT_THAT(ErrorOf({"--passes=0"}), HasSubstr("--passes is 0; choose 1 to 1000"));
  EXPECT_THAT(ErrorOf({"--batch=0"}), HasSubstr("--batch is 0"));
  EXPECT_THAT(ErrorOf({"--negatives=0"}), HasSubstr("--negatives is 0"));
  EXPECT_THAT(ErrorOf({"--width=0"}), HasSubstr("--width is 0"));
  EXPECT_THAT(ErrorOf({"--width=33"}), HasSubstr("--width is 33; choose an even number"));
  EXPECT_THAT(ErrorOf({"--learning-rate=nan"}), HasSubstr("--learning-rate"));
  EXPECT_THAT(ErrorOf({"--n3=-1"}), HasSubstr("--n3 is -1"));
  EXPECT_THAT(ErrorOf({"--relation-mean=11"}), HasSubstr("--relation-mean is 11"));
  EXPECT_THAT(ErrorOf({"--neighbors-min=0"}), HasSubstr("--neighbors-min is 0"));
  EXPECT_THAT(ErrorOf({"--held-out=0"}), HasSubstr("--held-out is 0"));
}

}  // namespace
}  // namespace covey::wordnet
