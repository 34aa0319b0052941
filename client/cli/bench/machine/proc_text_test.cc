// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/machine/proc_text.h"

#include <gtest/gtest.h>

namespace covey::cli {
namespace {

TEST(CpuLineTest, SumsAllTicksAndLeavesInterruptsOutOfBusy) {
  const auto line = ReadCpuLine("cpu  100 20 30 400 5 6 7 8 0 0\ncpu0 1 2 3 4 5 6 7 8 0 0\n");
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->busy, 150u);
  EXPECT_EQ(line->steal, 8u);
  EXPECT_EQ(line->total, 576u);
  for (const char* text : {"", "cpu0 1 2 3 4 5 6 7 8", "cpu 1 2 3", "cpu a b c d e f g h"}) {
    EXPECT_FALSE(ReadCpuLine(text).has_value()) << text;
  }
}

TEST(ProcessLineTest, ReadsANameWithSpacesAndParentheses) {
  const auto line = ReadProcessLine(
      "247 (a) b (c)) S 231 230 25466 0 -1 4194304 103 9 5 7 11 12 13 14 20 0 1 0 1449871");
  ASSERT_TRUE(line.has_value());
  EXPECT_EQ(line->parent, 231);
  EXPECT_EQ(line->page_faults, 108u);
  EXPECT_EQ(line->user, 11u);
  EXPECT_EQ(line->system, 12u);
  EXPECT_EQ(line->children, 27u);
  for (const char* text : {"", "247 (a", "247 (a) S 231 230"}) {
    EXPECT_FALSE(ReadProcessLine(text).has_value()) << text;
  }
}

TEST(ContextSwitchesTest, AddsBothKinds) {
  EXPECT_EQ(ReadContextSwitches(
                "Name:\tx\nvoluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t7\n"),
            12u);
  EXPECT_FALSE(ReadContextSwitches("voluntary_ctxt_switches:\t5\n").has_value());
}

TEST(PssTest, IsInBytes) {
  EXPECT_EQ(ReadPss("55f3-7ff ---p 00000000 00:00 0   [rollup]\nRss:  9 kB\nPss:     207 kB\n"
                    "Pss_Dirty:   112 kB\n"),
            207u << 10);
  EXPECT_FALSE(ReadPss("Rss: 9 kB\n").has_value());
}

TEST(ChoiceTest, IsTheOneInBrackets) {
  EXPECT_EQ(ReadChoice("always [madvise] never\n"), "madvise");
  EXPECT_EQ(ReadChoice("bbr\n"), "bbr");
  EXPECT_EQ(ReadChoice("]["), "][");
}

TEST(CpuModelTest, IsTheFirst) {
  EXPECT_EQ(ReadCpuModel("processor\t: 0\nmodel name\t: Some CPU @ 2\nmodel name\t: other\n"),
            "Some CPU @ 2");
  EXPECT_FALSE(ReadCpuModel("processor: 0\n").has_value());
}

}  // namespace
}  // namespace covey::cli
