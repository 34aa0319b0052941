// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/config_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/version.h"

namespace covey {
namespace {

class ConfigFileTest : public testing::Test {
 protected:
  ConfigFileTest() {
    options_.Add("host", &host_, "where to listen");
    options_.Add("data-loops", &loops_, "loops that serve shards");
    options_.Add("drain", &drain_, "longest wait at the end");
    options_.Add("memory", ConfigFile::Bytes{&memory_}, "most memory");
    options_.Add("rate", &rate_, "learning rate");
    options_.Add("spin", &spin_, "spin before blocking");
    options_.Add("wanted-rank", &rank_, "-1 = any");
  }

  absl::Status Load(const std::vector<std::string>& arguments) {
    const auto outcome = options_.Load(arguments, [this](const char* name) -> const char* {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    });
    if (outcome.ok()) printed_ = outcome->print.value_or("");
    return outcome.status();
  }

  std::string WriteFile(const std::string& text) {
    const std::string path =
        absl::StrCat(testing::TempDir(), "/",
                     testing::UnitTest::GetInstance()->current_test_info()->name(), ".yaml");
    std::ofstream(path) << text;
    return path;
  }

  std::string host_ = "127.0.0.1";
  uint32_t loops_ = 2;
  absl::Duration drain_ = absl::Seconds(5);
  uint64_t memory_ = 1 << 20;
  double rate_ = 0.5;
  bool spin_ = false;
  int32_t rank_ = -1;
  std::map<std::string, std::string> environment_;
  std::string printed_;
  ConfigFile options_{"covey_test", "Tests."};
};

TEST_F(ConfigFileTest, RefusesTextThatPrintConfigCannotShow) {
  const absl::Status status = Load({"--config", WriteFile("rate: 2\nhost: \"a\xff\x7f\"\n")});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_TRUE(absl::StrContains(status.message(), ":2: the value of \"host\" is not UTF-8"))
      << status;
}

TEST_F(ConfigFileTest, KeepsDefaults) {
  ASSERT_TRUE(Load({}).ok());
  EXPECT_EQ(host_, "127.0.0.1");
  EXPECT_EQ(loops_, 2u);
  EXPECT_EQ(options_.OriginOf("host"), "default");
  EXPECT_EQ(printed_, "");
}

TEST_F(ConfigFileTest, ReadsEveryKindOfValue) {
  ASSERT_TRUE(Load({"--host=::1", "--data-loops", "7", "--drain=1m30s", "--memory=256MiB",
                    "--rate=1e-3", "--spin", "--wanted-rank=-5"})
                  .ok());
  EXPECT_EQ(host_, "::1");
  EXPECT_EQ(loops_, 7u);
  EXPECT_EQ(drain_, absl::Seconds(90));
  EXPECT_EQ(memory_, 256u << 20);
  EXPECT_EQ(rate_, 1e-3);
  EXPECT_TRUE(spin_);
  EXPECT_EQ(rank_, -5);
}

TEST_F(ConfigFileTest, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  const std::string path = WriteFile("# ours\nhost: file\ndata_loops: 3\ndrain: 1s\n");
  environment_ = {{"COVEY_HOST", "environment"}, {"COVEY_DATA_LOOPS", "4"}};
  ASSERT_TRUE(Load({"--config", path, "--host=flag"}).ok());
  EXPECT_EQ(host_, "flag");
  EXPECT_EQ(loops_, 4u);
  EXPECT_EQ(drain_, absl::Seconds(1));
  EXPECT_EQ(rate_, 0.5);
  EXPECT_EQ(options_.OriginOf("host"), "flag --host");
  EXPECT_EQ(options_.OriginOf("data-loops"), "environment COVEY_DATA_LOOPS");
  EXPECT_EQ(options_.OriginOf("drain"), absl::StrCat(path, ":4"));
  EXPECT_EQ(options_.OriginOf("rate"), "default");
}

TEST_F(ConfigFileTest, TheEnvironmentMayNameTheFile) {
  environment_ = {{"COVEY_CONFIG", WriteFile("spin: true\n")}};
  ASSERT_TRUE(Load({"--spin=false"}).ok());
  EXPECT_FALSE(spin_);
  EXPECT_EQ(options_.OriginOf("spin"), "flag --spin");
}

TEST_F(ConfigFileTest, UnknownFlagNamesTheNearest) {
  EXPECT_EQ(Load({"--data-lops=3"}).message(),
            "unknown flag --data-lops; did you mean --data-loops?");
  EXPECT_EQ(Load({"--memori", "3"}).message(), "unknown flag --memori; did you mean --memory?");
  EXPECT_EQ(Load({"-x"}).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ConfigFileTest, UnknownKeyNamesTheNearestAndItsPlace) {
  const std::string path = WriteFile("host: a\nmemroy: 3\n");
  EXPECT_EQ(Load({"--config", path}).message(),
            absl::StrCat(path, ":2: unknown key \"memroy\"; did you mean \"memory\"?"));
}

TEST_F(ConfigFileTest, AKeyIsWrittenWithUnderscores) {
  const std::string path = WriteFile("data-loops: 3\n");
  EXPECT_EQ(Load({"--config", path}).message(),
            absl::StrCat(path, ":1: unknown key \"data-loops\"; did you mean \"data_loops\"?"));
}

TEST_F(ConfigFileTest, RefusesWhatIsNoFileOfOurs) {
  for (const char* text : {"- a\n- b\n", "host: [1, 2]\n", "host: {a: b}\n", "host: [1\n",
                           "host: a\nhost: b\n", "just words\n", "? [a]\n: b\n"}) {
    EXPECT_EQ(Load({"--config", WriteFile(text)}).code(), absl::StatusCode::kInvalidArgument)
        << text;
  }
  EXPECT_EQ(Load({"--config=/nowhere.yaml"}).message(),
            "cannot read the configuration file /nowhere.yaml; check its name");
}

TEST_F(ConfigFileTest, AFlagMayBeSetToNothing) {
  ASSERT_TRUE(Load({"--host=", "--spin"}).ok());
  EXPECT_EQ(host_, "");
  EXPECT_TRUE(spin_);
}

TEST_F(ConfigFileTest, RefusesValuesWithOneLine) {
  EXPECT_EQ(Load({"--drain=soon"}).message(),
            "flag --drain: \"soon\" is not a duration; write it like 500ms, 2s or 1h30m; see "
            "--help");
  EXPECT_EQ(Load({"--memory=lots"}).message(),
            "flag --memory: \"lots\" is not a size; write it like 4096, 64KiB or 256MiB; see "
            "--help");
  EXPECT_EQ(Load({"--data-loops=-1"}).message(),
            "flag --data-loops: \"-1\" is not a whole number from 0 to 4294967295; see --help");
  for (const char* bad :
       {"--drain=-1s", "--rate=nan", "--rate=x", "--spin=perhaps", "--wanted-rank=2147483648",
        "--memory=99999999999TiB", "--host", "surprise"}) {
    EXPECT_EQ(Load({bad}).code(), absl::StatusCode::kInvalidArgument) << bad;
  }
  environment_ = {{"COVEY_RATE", "fast"}};
  EXPECT_EQ(Load({}).message(), "environment COVEY_RATE: \"fast\" is not a number; see --help");
}

TEST_F(ConfigFileTest, PrintedConfigurationReadsBackAsAFile) {
  ASSERT_TRUE(Load({"--host=a: #b", "--memory=3MiB", "--print-config"}).ok());
  EXPECT_TRUE(absl::StrContains(printed_, "memory: 3MiB  # flag --memory\n")) << printed_;
  EXPECT_TRUE(absl::StrContains(printed_, "rate: 0.5  # default\n")) << printed_;
  const std::string path = WriteFile(printed_);
  host_.clear();
  memory_ = 0;
  ConfigFile again("covey_test", "");
  again.Add("host", &host_, "");
  again.Add("data-loops", &loops_, "");
  again.Add("drain", &drain_, "");
  again.Add("memory", ConfigFile::Bytes{&memory_}, "");
  again.Add("rate", &rate_, "");
  again.Add("spin", &spin_, "");
  again.Add("wanted-rank", &rank_, "");
  const auto none = [](const char*) -> const char* { return nullptr; };
  const auto status = again.Load({"--config", path}, none).status();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(host_, "a: #b");
  EXPECT_EQ(memory_, 3u << 20);
}

TEST_F(ConfigFileTest, AListMayBeGivenInParts) {
  using Words = std::vector<std::string>;
  Words tables = {"old"};
  options_.Add("table", &tables, "which tables");
  ASSERT_TRUE(Load({"--table", "a=x", "--table", "b,c", "--host", "h"}).ok());
  EXPECT_EQ(tables, (Words{"a=x", "b", "c"}));
  EXPECT_TRUE(absl::StrContains(options_.Print(), "table: a=x,b,c"));
  environment_["COVEY_TABLE"] = "d,e";
  ASSERT_TRUE(Load({}).ok());
  EXPECT_EQ(tables, (Words{"d", "e"}));
  EXPECT_FALSE(Load({"--host", "a", "--host", "b"}).ok());
}

TEST_F(ConfigFileTest, HelpListsFlagsVariablesAndDefaults) {
  ASSERT_TRUE(Load({"--help"}).ok());
  for (const char* part : {"Tests.", "--data-loops", "COVEY_DATA_LOOPS=2", "COVEY_DRAIN=5s",
                           "COVEY_MEMORY=1MiB", "--print-config", "--config"}) {
    EXPECT_TRUE(absl::StrContains(printed_, part)) << part << " is missing in:\n" << printed_;
  }
}

TEST_F(ConfigFileTest, NamesTheVersion) {
  ASSERT_TRUE(Load({"--version"}).ok());
  EXPECT_EQ(printed_, absl::StrCat("covey_test ", kVersion, "\n"));
}

TEST_F(ConfigFileTest, HandsOverTheRest) {
  std::vector<std::string> rest;
  options_.TakeRest(&rest, "-- PROGRAM [ARGUMENTS]");
  ASSERT_TRUE(Load({"--rate=2", "--", "train", "--rate=3", "--", "x"}).ok());
  EXPECT_EQ(rest, (std::vector<std::string>{"train", "--rate=3", "--", "x"}));
  EXPECT_EQ(rate_, 2);
}

}  // namespace
}  // namespace covey
