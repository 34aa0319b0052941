// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_escape.h"

#include <string>

#include "gtest/gtest.h"

namespace covey {
namespace {

constexpr char kFffd[] = "\xEF\xBF\xBD";

TEST(JsonEscapeTest, EscapesWhatJsonAsksFor) {
  EXPECT_EQ(JsonEscape(""), "");
  EXPECT_EQ(JsonEscape("plain text"), "plain text");
  EXPECT_EQ(JsonEscape("a\"b\\c"), "a\\\"b\\\\c");
  EXPECT_EQ(JsonEscape(absl::string_view("\n\x1f\0", 3)), "\\u000a\\u001f\\u0000");
}

TEST(JsonEscapeTest, EscapesWhatEndsALine) {
  EXPECT_EQ(JsonEscape("a\xC2\x85"
                       "b\xE2\x80\xA8"
                       "c\xE2\x80\xA9"
                       "d"),
            "a\\u0085b\\u2028c\\u2029d");
  EXPECT_EQ(JsonEscape("\xC2\x84\xC2\x86\xE2\x80\xA7\xE2\x80\xAA"),
            "\xC2\x84\xC2\x86\xE2\x80\xA7\xE2\x80\xAA");
}

TEST(JsonEscapeTest, KeepsValidUtf8) {
  // The first and the last character of each length, and the neighbors of the surrogates.
  for (const std::string text :
       {"\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF", "Kr\xC3\xA4he"}) {
    EXPECT_EQ(JsonEscape(text), text);
  }
}

TEST(JsonEscapeTest, ReplacesEachByteThatIsNotUtf8) {
  const struct {
    std::string text;
    int bad_bytes;
  } kCases[] = {
      {"\x80", 1},              // a continuation alone
      {"\xC0\x80", 2},          // overlong
      {"\xC1\xBF", 2},          // overlong
      {"\xE0\x9F\xBF", 3},      // overlong
      {"\xF0\x8F\xBF\xBF", 4},  // overlong
      {"\xED\xA0\x80", 3},      // a surrogate
      {"\xF4\x90\x80\x80", 4},  // above U+10FFFF
      {"\xF5\x80\x80\x80", 4},  // no lead byte
      {"\xFF\xFE", 2},
      {"\xE2\x82", 2},  // cut off
  };
  for (const auto& [text, bad_bytes] : kCases) {
    std::string expected = "<";
    for (int i = 0; i < bad_bytes; ++i) expected += kFffd;
    EXPECT_EQ(JsonEscape("<" + text + ">"), expected + ">");
  }
  EXPECT_EQ(JsonEscape("\xE2\x82\xC3\xA4"), std::string(kFffd) + kFffd + "\xC3\xA4");
}

}  // namespace
}  // namespace covey
