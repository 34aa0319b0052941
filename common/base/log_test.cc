// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/random.h"

namespace covey {
namespace {

// The objects on the lines that `log` has written; a line that is no object is null.
template <typename Log>
std::vector<nlohmann::json> LinesOf(Log log, const std::string& node = "server-0") {
  testing::internal::CaptureStderr();
  ConfigureLog(LogLevel::kDebug, LogFormat::kJson, node);
  log();
  const std::string text = testing::internal::GetCapturedStderr();
  std::vector<nlohmann::json> lines;
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n')) {
    lines.push_back(nlohmann::json::parse(line.begin(), line.end(), nullptr,
                                          /*allow_exceptions=*/false));
    EXPECT_FALSE(lines.back().is_discarded()) << line;
  }
  return lines;
}

std::string RandomBytes(Random& random) {
  // Some are long, some are made of what readers stumble over.
  static constexpr absl::string_view kPieces[] = {
      "\"", "\\", "\n", "\r", "{", "\xE2\x80\xA8", "\xC2\x85", "\xED\xA0\x80", "\xF0\x9F\x98\x80"};
  std::string bytes;
  const uint64_t length = random.Below(random.Below(50) == 0 ? 100'000 : 40);
  while (bytes.size() < length) {
    if (random.Below(4) == 0) {
      const absl::string_view piece = kPieces[random.Below(std::size(kPieces))];
      bytes.append(piece.data(), piece.size());
    } else {
      bytes += static_cast<char>(random.Below(256));
    }
  }
  return bytes;
}

TEST(LogTest, ALineIsOneJsonObjectWhateverBytesAreLogged) {
  Random random(1);
  for (int round = 0; round < 500; ++round) {
    const std::string event = RandomBytes(random);
    const std::string key = RandomBytes(random);
    const std::string value = RandomBytes(random);
    const auto lines = LinesOf([&] { LogError(event, {{key, value}, {key, 7}}); }, value);
    ASSERT_EQ(lines.size(), 1u);
    ASSERT_TRUE(lines[0].is_object());
    EXPECT_EQ(lines[0].size(), value.empty() ? 5u : 6u);
    EXPECT_EQ(lines[0]["level"], "error");
  }
}

// A peer, a label or a path cannot forge a line, or speak to the terminal.
TEST(LogTest, ALineOfTextIsOneLineWithoutCommandsWhateverBytesAreLogged) {
  const auto text_of = [](absl::string_view value) {
    testing::internal::CaptureStderr();
    ConfigureLog(LogLevel::kDebug, LogFormat::kHuman, "server-0");
    LogError("event", {{"key", value}});
    return testing::internal::GetCapturedStderr();
  };
  Random random(2);
  for (int round = 0; round < 500; ++round) {
    const std::string text = text_of(RandomBytes(random));
    ASSERT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << text;
    EXPECT_EQ(text.find_first_of("\r\x1b\x7f"), text.npos) << text;
  }
  EXPECT_THAT(text_of("a\nb"), testing::EndsWith(" server-0 event key=a\\nb\n"));
  EXPECT_THAT(text_of("\x1b[2J"), testing::EndsWith(" key=\\x1b[2J\n"));
  EXPECT_THAT(text_of("\xC2\x9B"), testing::EndsWith(" key=\\xc2\\x9b\n"));
  EXPECT_THAT(text_of("it's \"é\""), testing::EndsWith(" key=it's \"é\"\n"));
}

TEST(LogTest, NumbersAreNumbers) {
  const auto lines = LinesOf([] {
    LogInfo("event", {{"int", -3},
                      {"large", std::numeric_limits<uint64_t>::max()},
                      {"double", 0.25},
                      {"tiny", 1e-300},
                      {"nan", std::nan("")},
                      {"infinite", -std::numeric_limits<double>::infinity()},
                      {"bool", true},
                      {"text", "007"}});
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["int"], -3);
  EXPECT_EQ(lines[0]["large"], std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(lines[0]["double"], 0.25);
  EXPECT_EQ(lines[0]["tiny"], 1e-300);
  EXPECT_EQ(lines[0]["nan"], "nan");
  EXPECT_EQ(lines[0]["infinite"], "-inf");
  EXPECT_EQ(lines[0]["bool"], true);
  EXPECT_EQ(lines[0]["text"], "007");
}

TEST(LogTest, EachKeyIsThereOnce) {
  const auto lines = LinesOf([] {
    LogInfo("event", {{"node", 7}, {"event", "x"}, {"level", 1}, {"time", 2}, {"a", 1}, {"a", 2}});
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["node"], "server-0");
  EXPECT_EQ(lines[0]["node_"], 7);
  EXPECT_EQ(lines[0]["event"], "event");
  EXPECT_EQ(lines[0]["level"], "info");
  EXPECT_EQ(lines[0]["a"], 1);
  EXPECT_EQ(lines[0]["a_"], 2);
}

TEST(LogTest, TheLevelCanChange) {
  const auto lines = LinesOf([] {
    SetLogLevel(LogLevel::kWarning);
    LogInfo("left_out");
    LogWarning("logged");
    SetLogLevel(LogLevel::kDebug);
    LogLine(LogLevel::kDebug, "logged_again");
  });
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["event"], "logged");
  EXPECT_EQ(lines[1]["event"], "logged_again");
}

}  // namespace
}  // namespace covey
