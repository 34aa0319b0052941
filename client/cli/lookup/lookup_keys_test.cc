// SPDX-License-Identifier: Apache-2.0
#include "client/cli/lookup/lookup_keys.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LookupKeysTest, ReadsDecimalAndHexadecimalKeys) {
  EXPECT_EQ(*ParseKey("0"), 0u);
  EXPECT_EQ(*ParseKey("42"), 42u);
  EXPECT_EQ(*ParseKey("18446744073709551615"), ~uint64_t{0});
  EXPECT_EQ(*ParseKey("0x2a"), 42u);
  EXPECT_EQ(*ParseKey("0xFFFFFFFFFFFFFFFF"), ~uint64_t{0});
}

TEST(LookupKeysTest, RefusesWhatIsNoKey) {
  for (const std::string text :
       {"", "-1", "+1", " 1", "1 ", "1.5", "1e3", "2a", "0x", "0xg", "0x-1", "0x0x1", "x2a",
        "18446744073709551616", "0x10000000000000000"}) {
    const absl::Status status = ParseKey(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("'" + text + "' is no key"));
  }
}

TEST(LookupKeysTest, ReadsTexts) {
  EXPECT_THAT(*ParseKeys("f", "1 2\t3\r\n# none 4\n\n0x10 # 5\n6"), ElementsAre(1, 2, 3, 16, 6));
  EXPECT_THAT(*ParseKeys("f", ""), ElementsAre());
}

TEST(LookupKeysTest, SaysWhereAWordIsNoKey) {
  EXPECT_THAT(std::string(ParseKeys("keys.txt", "1\n2 three\n").status().message()),
              HasSubstr("keys.txt, line 2: 'three' is no key"));
  std::string many;
  for (size_t i = 0; i < kLookupKeysMax; ++i) many += "1 ";
  EXPECT_EQ(ParseKeys("f", many)->size(), kLookupKeysMax);
  EXPECT_THAT(std::string(ParseKeys("f", many + "1").status().message()),
              HasSubstr("more than 1048576 keys"));
}

}  // namespace
}  // namespace covey::cli
