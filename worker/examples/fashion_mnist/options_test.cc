#include "worker/examples/fashion_mnist/options.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::fashion_mnist {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string ErrorOf(const std::vector<const char*>& arguments) {
  const absl::Status status = ParseOptions(arguments).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("\n")));
  return std::string(status.message());
}

TEST(OptionsTest, DefaultsAreThoseOfTheStruct) {
  const absl::StatusOr<Options> options = ParseOptions({});
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->contract, Options().contract);
  EXPECT_EQ(options->epochs, Options().epochs);
  EXPECT_EQ(options->data_dir, Options().data_dir);
  EXPECT_EQ(options->help, "");
}

TEST(OptionsTest, ReadsEveryFlag) {
  const std::vector<const char*> arguments = {
      "--contract",      "ssp:2",      "--epochs=3", "--batch", "17",
      "--learning-rate", "0.25",       "--momentum", "0.5",     "--hidden=200",
      "--seed=9",        "--data-dir", "/data"};
  const absl::StatusOr<Options> options = ParseOptions(arguments);
  ASSERT_TRUE(options.ok()) << options.status();
  EXPECT_EQ(options->contract, (Contract{.kind = Contract::Kind::kSsp, .staleness = 2}));
  EXPECT_EQ(options->epochs, 3);
  EXPECT_EQ(options->batch, 17);
  EXPECT_EQ(options->learning_rate, 0.25);
  EXPECT_EQ(options->momentum, 0.5);
  EXPECT_EQ(options->hidden, 200);
  EXPECT_EQ(options->seed, 9);
  EXPECT_EQ(options->data_dir, "/data");
}

TEST(OptionsTest, UnknownArgumentsNameTheNearestKnownOne) {
  EXPECT_THAT(ErrorOf({"--epoch", "3"}), AllOf(HasSubstr("'--epoch'"), HasSubstr("--epochs")));
  EXPECT_THAT(ErrorOf({"--learnig-rate=3"}),
              AllOf(HasSubstr("'--learnig-rate'"), HasSubstr("--learning-rate")));
  EXPECT_THAT(ErrorOf({"hidden"}), HasSubstr("--hidden"));
}

TEST(OptionsTest, RefusesBadValues) {
  EXPECT_THAT(ErrorOf({"--epochs", "many"}), AllOf(HasSubstr("--epochs"), HasSubstr("many")));
  EXPECT_THAT(ErrorOf({"--epochs", "0"}), HasSubstr("--epochs"));
  EXPECT_THAT(ErrorOf({"--epochs", "-1"}), HasSubstr("--epochs"));
  EXPECT_THAT(ErrorOf({"--epochs"}), HasSubstr("--epochs"));
  EXPECT_THAT(ErrorOf({"--batch", "5000"}), HasSubstr("--batch"));
  EXPECT_THAT(ErrorOf({"--hidden", "1.5"}), HasSubstr("--hidden"));
  EXPECT_THAT(ErrorOf({"--seed", "-1"}), HasSubstr("--seed"));
  EXPECT_THAT(ErrorOf({"--momentum", "1"}), HasSubstr("--momentum"));
  EXPECT_THAT(ErrorOf({"--learning-rate", "nan"}), HasSubstr("--learning-rate"));
  EXPECT_THAT(ErrorOf({"--contract", "sometimes"}), HasSubstr("sometimes"));
}

TEST(OptionsTest, HelpNamesEveryFlagWithItsDefault) {
  const absl::StatusOr<Options> options = ParseOptions(std::vector<const char*>{"--help"});
  ASSERT_TRUE(options.ok()) << options.status();
  for (const char* text : {"--contract", "buffered", "--epochs", "--batch", "--learning-rate",
                           "--momentum", "--hidden", "--seed", "--data-dir", "/usr/share"}) {
    EXPECT_THAT(options->help, HasSubstr(text));
  }
}

}  // namespace
}  // namespace covey::fashion_mnist
