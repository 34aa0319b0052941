// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/options.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::factorization {
namespace {

using ::testing::HasSubstr;

const char* NoEnvironment(const char*) { return nullptr; }

absl::Status Load(const std::vector<std::string>& arguments, Options& options) {
  ConfigFile file("factorization", "Trains.");
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
  EXPECT_EQ(options.factors_used(), 16u);
}

TEST(OptionsTest, ReadsEveryFlag) {
  Options options;
  const absl::Status status = Load({"--data=criteo",
                                    "--train-file=a",
                                    "--test-file=b",
                                    "--evaluate=validation",
                                    "--model=linear",
                                    "--factors=8",
                                    "--optimizer=ftrl",
                                    "--passes=3",
                                    "--batch=32",
                                    "--learning-rate=0.1",
                                    "--l1=1",
                                    "--l2=0.5",
                                    "--untrained",
                                    "--seed=9",
                                    "--index=c",
                                    "--admit-after=5",
                                    "--row-type=bfloat16",
                                    "--filter=significance",
                                    "--significance=0.5",
                                    "--filter-pieces=2",
                                    "--unfiltered-passes=1",
                                    "--contract=buffered:3",
                                    "--objective"},
                                   options);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(options.source, Source::kCriteo);
  EXPECT_EQ(options.train_file, "a");
  EXPECT_EQ(options.test_file, "b");
  EXPECT_EQ(options.evaluate, HeldOut::kValidation);
  EXPECT_EQ(options.model, Model::kLinear);
  EXPECT_EQ(options.factors_used(), 0u);
  EXPECT_EQ(options.optimizer, Optimizer::kFtrl);
  EXPECT_EQ(options.passes, 3u);
  EXPECT_EQ(options.batch, 32u);
  EXPECT_EQ(options.learning_rate, 0.1);
  EXPECT_EQ(options.l1, 1);
  EXPECT_EQ(options.l2, 0.5);
  EXPECT_TRUE(options.untrained);
  EXPECT_EQ(options.seed, 9u);
  EXPECT_EQ(options.index, "c");
  EXPECT_EQ(options.admit_after, 5u);
  EXPECT_EQ(options.row_type, RowType::kBfloat16);
  EXPECT_EQ(options.filter, Filter::kSignificance);
  EXPECT_EQ(options.significance, 0.5);
  EXPECT_EQ(options.filter_pieces, 2u);
  EXPECT_EQ(options.unfiltered_passes, 1u);
  EXPECT_TRUE(options.objective);
  EXPECT_EQ(ContractName(options.contract), "buffered:3");
}

TEST(OptionsTest, TheOuterRateFollowsFromGroupsAndMean) {
  Options local;
  ASSERT_TRUE(Load({"--contract=local:8"}, local).ok());
  EXPECT_EQ(local.round_mean, RoundMean::kOfAllPushes);
  EXPECT_EQ(local.OuterRate(1), 1);
  EXPECT_EQ(local.OuterRate(4), 2);
  Options holders;
  ASSERT_TRUE(
      Load({"--contract=local:8", "--round-mean=holders", "--outer-rate=auto"}, holders).ok());
  EXPECT_EQ(holders.round_mean, RoundMean::kOfHolders);
  EXPECT_EQ(holders.OuterRate(4), 1);
  Options given;
  ASSERT_TRUE(Load({"--contract=local:8", "--outer-rate=3"}, given).ok());
  EXPECT_EQ(given.OuterRate(4), 3);
}

TEST(OptionsTest, RefusesWhatDoesNotFit) {
  EXPECT_THAT(ErrorOf({"--data=movies"}), HasSubstr("dependencies, roles, libsvm, criteo"));
  EXPECT_THAT(ErrorOf({"--model=deep"}), HasSubstr("choose one of fm, linear"));
  EXPECT_THAT(ErrorOf({"--data=libsvm", "--train-file=a"}), HasSubstr("--test-file"));
  EXPECT_THAT(ErrorOf({"--train-file=a"}), HasSubstr("--data is dependencies"));
  EXPECT_THAT(ErrorOf({"--l1=1"}), HasSubstr("--l1 is 1, and only FTRL"));
  EXPECT_THAT(ErrorOf({"--optimizer=ftrl"}), HasSubstr("add --model linear"));
  EXPECT_THAT(ErrorOf({"--factors=0"}), HasSubstr("--factors is 0; choose 1 to 1024"));
  EXPECT_THAT(ErrorOf({"--passes=0"}), HasSubstr("--passes is 0"));
  EXPECT_THAT(ErrorOf({"--admit-after=0"}), HasSubstr("--admit-after is 0"));
  EXPECT_THAT(ErrorOf({"--batch=0"}), HasSubstr("--batch is 0"));
  EXPECT_THAT(ErrorOf({"--learning-rate=0"}), HasSubstr("--learning-rate is 0"));
  EXPECT_THAT(ErrorOf({"--l2=-1"}), HasSubstr("--l2 is -1"));
  EXPECT_THAT(ErrorOf({"--filter=all"}), HasSubstr("choose one of none, kkt, significance"));
  EXPECT_THAT(ErrorOf({"--filter=kkt"}), HasSubstr("--l1 is 0; add --l1 1"));
  EXPECT_THAT(ErrorOf({"--filter-pieces=17"}), HasSubstr("--filter-pieces is 17; choose 1 to 16"));
  EXPECT_THAT(ErrorOf({"--significance=-1"}), HasSubstr("--significance is -1"));
  EXPECT_THAT(ErrorOf({"--unfiltered-passes=1001"}), HasSubstr("--unfiltered-passes is 1001"));
  EXPECT_THAT(ErrorOf({"--contract=bsp"}), HasSubstr("choose local:1"));
  EXPECT_THAT(ErrorOf({"--contract=local:8", "--optimizer=ftrl", "--model=linear"}),
              HasSubstr("leave out --optimizer ftrl"));
  EXPECT_THAT(ErrorOf({"--contract=local:8", "--filter=significance"}),
              HasSubstr("leave out --filter"));
  EXPECT_THAT(ErrorOf({"--outer-rate=2"}), HasSubstr("async, which has no outer optimizer"));
  EXPECT_THAT(ErrorOf({"--contract=local:8", "--outer-rate=0"}), HasSubstr("--outer-rate is 0"));
  EXPECT_THAT(ErrorOf({"--contract=local:8", "--outer-rate=half"}),
              HasSubstr("a number or auto is expected"));
  EXPECT_THAT(ErrorOf({"--round-mean=holders"}),
              HasSubstr("--round-mean is holders, and --contract is async, which has no rounds"));
  EXPECT_THAT(ErrorOf({"--contract=local:8", "--round-mean=some"}),
              HasSubstr("choose one of all, holders"));
  EXPECT_THAT(ErrorOf({"--objective"}), HasSubstr("add --optimizer ftrl"));
}

}  // namespace
}  // namespace covey::factorization
