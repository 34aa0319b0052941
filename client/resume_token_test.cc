// SPDX-License-Identifier: Apache-2.0
#include "client/resume_token.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::client {
namespace {

using ::testing::HasSubstr;

TEST(ResumeTokenTest, ItsTextIsReadBack) {
  const ResumeToken token{.run = 0xfedcba9876543210,
                          .table = TableId(7),
                          .shards = {{1, Version(2)}, {~uint64_t{0}, Version(~uint64_t{0})}}};
  EXPECT_EQ(token.ToText(),
            "rows1:fedcba9876543210:7:1.2,18446744073709551615.18446744073709551615");
  EXPECT_EQ(*ResumeToken::Parse(token.ToText()), token);
}

TEST(ResumeTokenTest, OtherTextsAreRefused) {
  const std::string text = "rows1:a:7:1.2";
  EXPECT_TRUE(ResumeToken::Parse(text).ok());
  for (const std::string wrong :
       {"", "rows1", "rows1:a:7", "rows1:a:7:", "rows1:a:7:1", "rows1:a:7:1.", "rows1:a:7:1.2,",
        "rows1:a:7:1.2.3", "rows1:g:7:1.2", "rows1:a:-7:1.2", "rows1:a:7:1.-2", "rows2:a:7:1.2",
        "rows1:a:4294967296:1.2", "rows1:a:7:1.2:3"}) {
    const absl::Status status = ResumeToken::Parse(wrong).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << wrong;
    EXPECT_THAT(std::string(status.message()), HasSubstr("is no resume token")) << wrong;
  }
  std::string many = "rows1:a:7:1.2";
  for (int i = 1; i < 65536; ++i) many += ",1.2";
  EXPECT_TRUE(ResumeToken::Parse(many).ok());
  EXPECT_FALSE(ResumeToken::Parse(many + ",1.2").ok());
}

}  // namespace
}  // namespace covey::client
