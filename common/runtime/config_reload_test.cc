// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/config_reload.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/runtime/log_level.h"

namespace covey {
namespace {

struct Settings {
  Settings() {
    options.Add("host", &host, "where to listen");
    options.Add("rate-max", ConfigFile::Bytes{&rate_max}, "bytes per second");
    options.Add("drain", &drain, "longest wait at the end");
    AddLogLevel(options, &log_level);
  }

  std::string host = "127.0.0.1";
  uint64_t rate_max = 0;
  absl::Duration drain = absl::Seconds(5);
  LogLevel log_level = LogLevel::kInfo;
  ConfigFile options{"covey_test", "Tests."};
};

class ConfigReloadTest : public testing::Test {
 protected:
  ConfigReloadTest()
      : path_(absl::StrCat(testing::TempDir(), "/",
                           testing::UnitTest::GetInstance()->current_test_info()->name(),
                           ".yaml")) {}

  ConfigFile::Environment environment() {
    return [this](const char* name) -> const char* {
      const auto found = environment_.find(name);
      return found == environment_.end() ? nullptr : found->second.c_str();
    };
  }
  void Write(const std::string& text) { std::ofstream(path_) << text; }
  // As at the start of a process.
  ConfigReload Start(const std::vector<std::string>& arguments) {
    EXPECT_TRUE(started_.options.Load(arguments, environment()).ok());
    return ConfigReload(started_.options, {{"rate-max"}, {"drain"}, {"log-level", "debug"}},
                        arguments, environment());
  }
  // The lines of the log that Finish writes.
  static std::string LogOf(ConfigReload& reload, const absl::Status& status,
                           LogLevel log_level = LogLevel::kInfo) {
    testing::internal::CaptureStderr();
    ConfigureLog(LogLevel::kInfo, LogFormat::kHuman, "");
    reload.Finish(status, log_level);
    return testing::internal::GetCapturedStderr();
  }

  const std::string path_;
  std::map<std::string, std::string> environment_;
  Settings started_;
};

TEST_F(ConfigReloadTest, TakesWhatMayChangeAndNamesTheRest) {
  Write("rate_max: 1MiB\nhost: a\n");
  ConfigReload reload = Start({"--config", path_});
  Write("rate_max: 2MiB\nhost: b\ndrain: 7s\n");
  Settings read;
  Settings next;
  ASSERT_TRUE(reload.Read(read.options, next.options).ok());
  EXPECT_EQ(read.host, "b");
  EXPECT_EQ(next.host, "a");
  EXPECT_EQ(next.rate_max, 2u << 20);
  EXPECT_EQ(next.drain, absl::Seconds(7));
  const std::string log = LogOf(reload, absl::OkStatus());
  EXPECT_TRUE(absl::StrContains(log, "setting_changed name=rate-max before=1MiB after=2MiB"))
      << log;
  EXPECT_TRUE(absl::StrContains(log, "setting_changed name=drain before=5s after=7s")) << log;
  EXPECT_TRUE(absl::StrContains(
      log, "setting_not_changed name=host before=a after=b reason=needs a restart"))
      << log;
  EXPECT_TRUE(absl::StrContains(log, "settings_reloaded changed=2 need_restart=1")) << log;

  // Again: what has changed is in use, what needs a restart is named again.
  Settings read_again;
  Settings next_again;
  ASSERT_TRUE(reload.Read(read_again.options, next_again.options).ok());
  EXPECT_EQ(next_again.rate_max, 2u << 20);
  EXPECT_TRUE(absl::StrContains(LogOf(reload, absl::OkStatus()),
                                "settings_reloaded changed=0 need_restart=1"));
}

TEST_F(ConfigReloadTest, ASettingThatIsGoneFromTheFileHasItsDefault) {
  Write("rate_max: 1MiB\n");
  ConfigReload reload = Start({absl::StrCat("--config=", path_)});
  Write("");
  Settings read;
  Settings next;
  ASSERT_TRUE(reload.Read(read.options, next.options).ok());
  EXPECT_EQ(next.rate_max, 0u);
}

TEST_F(ConfigReloadTest, FlagsAndTheEnvironmentComeFirst) {
  Write("");
  environment_ = {{"COVEY_CONFIG", path_}, {"COVEY_DRAIN", "9s"}};
  ConfigReload reload = Start({"--rate-max", "3MiB"});
  Write("rate_max: 1MiB\ndrain: 1s\n");
  Settings read;
  Settings next;
  ASSERT_TRUE(reload.Read(read.options, next.options).ok());
  EXPECT_EQ(next.rate_max, 3u << 20);
  EXPECT_EQ(next.drain, absl::Seconds(9));
  EXPECT_TRUE(absl::StrContains(LogOf(reload, absl::OkStatus()),
                                "settings_reloaded changed=0 need_restart=0"));
}

TEST_F(ConfigReloadTest, SomeChangeToOneValueAlone) {
  Write("log_level: info\n");
  ConfigReload reload = Start({"--config", path_});
  for (const auto& [level, expected] :
       {std::pair{"error", LogLevel::kInfo}, std::pair{"debug", LogLevel::kDebug}}) {
    Write(absl::StrCat("log_level: ", level, "\n"));
    Settings read;
    Settings next;
    ASSERT_TRUE(reload.Read(read.options, next.options).ok());
    EXPECT_EQ(next.log_level, expected);
  }
}

TEST_F(ConfigReloadTest, TheLevelOfTheLogIsThatOfTheReloadAfterItsLines) {
  Write("rate_max: 1MiB\n");
  ConfigReload reload = Start({"--config", path_});
  Write("rate_max: 2MiB\n");
  Settings read;
  Settings next;
  ASSERT_TRUE(reload.Read(read.options, next.options).ok());
  const std::string log = LogOf(reload, absl::OkStatus(), LogLevel::kError);
  EXPECT_TRUE(absl::StrContains(log, "setting_changed name=rate-max")) << log;
  EXPECT_FALSE(IsLogged(LogLevel::kWarning));
  reload.Finish(absl::InvalidArgumentError("no"), LogLevel::kInfo);
  EXPECT_FALSE(IsLogged(LogLevel::kWarning));
  reload.Finish(absl::OkStatus(), LogLevel::kDebug);
  EXPECT_TRUE(IsLogged(LogLevel::kDebug));
}

TEST_F(ConfigReloadTest, AWrongFileChangesNothing) {
  Write("rate_max: 1MiB\n");
  ConfigReload reload = Start({"--config", path_});
  Write("drain: 1s\nrate_max: much\n");
  Settings read;
  Settings next;
  const absl::Status status = reload.Read(read.options, next.options);
  EXPECT_EQ(status.message(),
            absl::StrCat(path_,
                         ":2: \"much\" is not a size; write it like 4096, 64KiB or 256MiB; "
                         "see --help"));
  const std::string log = LogOf(reload, status);
  EXPECT_TRUE(absl::StrContains(log, "settings_not_reloaded reason=")) << log;
  EXPECT_FALSE(absl::StrContains(log, "setting_changed")) << log;

  // A refusal after Read changes nothing either.
  Write("rate_max: 4MiB\n");
  Settings read_again;
  Settings next_again;
  ASSERT_TRUE(reload.Read(read_again.options, next_again.options).ok());
  LogOf(reload, absl::InvalidArgumentError("no"));
  Settings last;
  Settings last_next;
  ASSERT_TRUE(reload.Read(last.options, last_next.options).ok());
  EXPECT_TRUE(absl::StrContains(LogOf(reload, absl::OkStatus()),
                                "setting_changed name=rate-max before=1MiB after=4MiB"));
}

TEST_F(ConfigReloadTest, WithoutAFileThereIsNothingToReload) {
  ConfigReload reload = Start({"--rate-max=1MiB"});
  environment_ = {{"COVEY_DRAIN", "9s"}};
  Settings read;
  Settings next;
  const absl::Status status = reload.Read(read.options, next.options);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(absl::StrContains(LogOf(reload, status), "there is no configuration file"));
}

}  // namespace
}  // namespace covey
