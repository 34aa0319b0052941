// SPDX-License-Identifier: Apache-2.0
#include "client/c/definitions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace covey::c {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string Refusal(absl::string_view json) {
  const auto spec = TableSpecOf(json);
  return spec.ok() ? "accepted" : std::string(spec.status().message());
}

TEST(TableSpecOf, ReadsJson) {
  const auto spec = TableSpecOf(
      R"({"name": "w", "shape": [2, 3], "learning_rate": {"base": 0.5}, "replicas": 2,
          "optimizer": {"kind": "ADAM"}, "contract": {"kind": "SSP", "staleness": 4}})");
  ASSERT_TRUE(spec.ok()) << spec.status();
  EXPECT_EQ("w", spec->name());
  EXPECT_EQ(proto::FLOAT32, spec->data_type());
  EXPECT_EQ(3u, spec->shape(1));
  EXPECT_EQ(0.5, spec->learning_rate().base());
  EXPECT_EQ(proto::Optimizer::ADAM, spec->optimizer().kind());
  EXPECT_EQ(4u, spec->contract().staleness());
}

TEST(TableSpecOf, NamesTheNearestField) {
  EXPECT_THAT(Refusal(R"({"name": "w", "shapes": [4]})"),
              AllOf(HasSubstr("shapes"), HasSubstr("Did you mean 'shape'?")));
  EXPECT_THAT(Refusal(R"({"optimizer": {"momentom": 0.9}})"),
              AllOf(HasSubstr("momentom"), HasSubstr("Did you mean 'momentum'?")));
}

TEST(TableSpecOf, RefusesWhatIsNoDefinition) {
  EXPECT_NE("accepted", Refusal(""));
  EXPECT_NE("accepted", Refusal("[1]"));
  EXPECT_NE("accepted", Refusal(R"({"shape": [-1]})"));
  EXPECT_NE("accepted", Refusal(R"({"optimizer": {"kind": "ADAMS"}})"));
  EXPECT_NE("accepted", Refusal(std::string(40000, '[')));
  EXPECT_THAT(Refusal(std::string(kDefinitionBytesMax + 1, ' ')), HasSubstr("bytes of JSON"));
}

TEST(JsonOf, IsReadAgain) {
  const auto spec = TableSpecOf(R"({"name": "w", "shape": [4], "non_finite": "ACCEPT"})");
  ASSERT_TRUE(spec.ok());
  EXPECT_THAT(JsonOf(*spec), HasSubstr("\"non_finite\":\"ACCEPT\""));
  EXPECT_EQ(spec->SerializeAsString(), TableSpecOf(JsonOf(*spec))->SerializeAsString());
}

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() : options_("test", "") { options_.Add("scheduler", &scheduler_, ""); }

  std::string scheduler_ = "default";
  ConfigFile options_;
};

TEST_F(SettingsTest, AreOptional) {
  ASSERT_TRUE(LoadSettings(nullptr, options_).ok());
  EXPECT_EQ("default", scheduler_);
}

TEST_F(SettingsTest, WinOverTheEnvironment) {
  setenv("COVEY_SCHEDULER", "environment", 1);
  ASSERT_TRUE(LoadSettings(nullptr, options_).ok());
  EXPECT_EQ("environment", scheduler_);
  const char* const settings[] = {"scheduler=a=b", nullptr};
  ASSERT_TRUE(LoadSettings(settings, options_).ok());
  EXPECT_EQ("a=b", scheduler_);
  unsetenv("COVEY_SCHEDULER");
}

TEST_F(SettingsTest, RefuseUnknownNamesAndForms) {
  const char* const unknown[] = {"schedular=x", nullptr};
  EXPECT_THAT(std::string(LoadSettings(unknown, options_).message()), HasSubstr("scheduler"));
  for (const char* wrong : {"scheduler", "--scheduler=x", ""}) {
    const char* const settings[] = {wrong, nullptr};
    EXPECT_THAT(std::string(LoadSettings(settings, options_).message()), HasSubstr("name=value"))
        << wrong;
  }
}

// What would end a program, as flags do, must not end one that gives settings.
TEST_F(SettingsTest, DoNotPrint) {
  for (const char* flag : {"help=true", "version=true", "print-config=true"}) {
    const char* const settings[] = {flag, nullptr};
    EXPECT_FALSE(LoadSettings(settings, options_).ok()) << flag;
  }
}

TEST(FormatOf, KnowsAllFormats) {
  for (int32_t format = 0; format < 7; ++format) {
    EXPECT_EQ(format, static_cast<int32_t>(*FormatOf(format)));
  }
  EXPECT_FALSE(FormatOf(7).ok());
  EXPECT_FALSE(FormatOf(-1).ok());
}

TEST(ElementTypeOf, KnowsAllTypes) {
  for (int32_t type = 0; type < 5; ++type) {
    EXPECT_EQ(type, static_cast<int32_t>(*ElementTypeOf(type)));
  }
  EXPECT_THAT(std::string(ElementTypeOf(5).status().message()), HasSubstr("element type 5"));
  EXPECT_FALSE(ElementTypeOf(-1).ok());
}

TEST(ReduceOpOf, KnowsAllOperations) {
  for (int32_t operation = 0; operation < 4; ++operation) {
    EXPECT_EQ(operation, static_cast<int32_t>(*ReduceOpOf(operation)));
  }
  EXPECT_THAT(std::string(ReduceOpOf(4).status().message()), HasSubstr("operation 4"));
  EXPECT_FALSE(ReduceOpOf(-1).ok());
}

}  // namespace
}  // namespace covey::c
