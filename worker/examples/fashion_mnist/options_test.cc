// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/options.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::fashion_mnist {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const char* NoEnvironment(const char*) { return nullptr; }

absl::Status Load(const std::vector<std::string>& arguments, Options& options) {
  ConfigFile file("fashion_mnist", "Trains.");
  options.AddTo(file);
  const absl::StatusOr<ConfigFile::Outcome> outcome = file.Load(arguments, NoEnvironment);
  return outcome.ok() ? options.Validate() : outcome.status();
}

std::string ErrorOf(const std::vector<std::string>& arguments) {
  Options options;
  const absl::Status status = Load(arguments, options);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  return std::string(status.message());
}

TEST(OptionsTest, DefaultsAreValid) {
  Options options;
  EXPECT_TRUE(Load({}, options).ok());
  EXPECT_EQ(options.contract, Contract());
}

TEST(OptionsTest, ReadsEveryFlag) {
  Options options;
  const absl::Status status = Load({"--contract", "ssp:2", "--epochs=3", "--batch", "17",
                                    "--learning-rate", "0.25", "--momentum", "0.5", "--hidden=200",
                                    "--seed=9", "--data-dir", "/data", "--loss-scale", "1024"},
                                   options);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(options.contract, (Contract{.kind = Contract::Kind::kSsp, .staleness = 2}));
  EXPECT_EQ(options.epochs, 3u);
  EXPECT_EQ(options.batch, 17u);
  EXPECT_EQ(options.learning_rate, 0.25);
  EXPECT_EQ(options.momentum, 0.5);
  EXPECT_EQ(options.hidden, 200u);
  EXPECT_EQ(options.seed, 9u);
  EXPECT_EQ(options.loss_scale, 1024);
  EXPECT_EQ(options.data_dir, "/data");
  EXPECT_TRUE(options.automatic_momentum);
  EXPECT_FALSE(options.stop_at_target);
  ASSERT_TRUE(Load({"--automatic-momentum=false", "--wire=bfloat16", "--target-accuracy", "0.88",
                    "--evaluate-every", "500", "--stop-at-target"},
                   options)
                  .ok());
  EXPECT_FALSE(options.automatic_momentum);
  EXPECT_TRUE(options.stop_at_target);
  EXPECT_EQ(options.wire, WireFormat::kBfloat16);
  EXPECT_EQ(options.target_accuracy, 0.88);
  EXPECT_EQ(options.evaluate_every, 500u);
  EXPECT_FALSE(options.measures_noise());
  for (const char* flag : {"--measure-noise", "--grow-batch=4", "--scale-rate=128"}) {
    Options measured;
    ASSERT_TRUE(Load({flag}, measured).ok());
    EXPECT_TRUE(measured.measures_noise());
  }
}

TEST(OptionsTest, RefusesWhatIsUnknownOrOutOfRange) {
  EXPECT_THAT(ErrorOf({"--epoch", "3"}), HasSubstr("--epochs"));
  EXPECT_THAT(ErrorOf({"--epochs", "many"}), HasSubstr("many"));
  EXPECT_THAT(ErrorOf({"--epochs", "0"}), HasSubstr("--epochs is 0; choose 1 to 1000"));
  EXPECT_THAT(ErrorOf({"--batch", "5000"}), HasSubstr("--batch is 5000"));
  EXPECT_THAT(ErrorOf({"--hidden", "1.5"}), HasSubstr("--hidden"));
  EXPECT_THAT(ErrorOf({"--seed", "-1"}), HasSubstr("--seed"));
  EXPECT_THAT(ErrorOf({"--momentum", "1"}), HasSubstr("--momentum is 1"));
  EXPECT_THAT(ErrorOf({"--learning-rate", "nan"}), HasSubstr("--learning-rate"));
  EXPECT_THAT(ErrorOf({"--loss-scale", "0"}), HasSubstr("--loss-scale is 0"));
  EXPECT_THAT(ErrorOf({"--target-accuracy", "88"}), HasSubstr("--target-accuracy is 88"));
  EXPECT_THAT(ErrorOf({"--lag", "2"}), HasSubstr("--lag is 2; choose 0 to 1"));
  EXPECT_THAT(ErrorOf({"--evaluate-every", "0"}), HasSubstr("--evaluate-every is 0"));
  EXPECT_THAT(ErrorOf({"--contract", "sometimes"}), HasSubstr("sometimes"));
  EXPECT_THAT(ErrorOf({"--contract=local:8", "--outer-momentum", "1"}),
              HasSubstr("--outer-momentum is 1"));
  EXPECT_THAT(ErrorOf({"--outer-momentum", "0.9"}), HasSubstr("choose local:H"));
  EXPECT_THAT(ErrorOf({"--grow-batch", "12"}), HasSubstr("choose a power of two"));
  EXPECT_THAT(ErrorOf({"--grow-batch", "128"}), HasSubstr("--grow-batch is 128"));
  EXPECT_THAT(ErrorOf({"--grow-batch", "4", "--target-accuracy", "0.88"}),
              HasSubstr("leave out --fixed-split"));
  EXPECT_THAT(ErrorOf({"--scale-rate", "128", "--adasum"}), HasSubstr("takes no mean"));
  Options rounds;
  EXPECT_TRUE(
      Load({"--contract=local:8", "--outer-momentum=0.9", "--outer-learning-rate=0.7"}, rounds)
          .ok());
}

}  // namespace
}  // namespace covey::fashion_mnist
