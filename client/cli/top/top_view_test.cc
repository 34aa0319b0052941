// SPDX-License-Identifier: Apache-2.0
#include "client/cli/top/top_view.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/testing/status_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

std::string Text(const proto::StatusReply& status, const TopScreen& screen) {
  return absl::StrJoin(TopLines(status, screen), "\n");
}

TEST(TopViewTest, EveryPaneFitsTheScreen) {
  for (const TopScreen size :
       {TopScreen{.columns = 80, .rows = 24}, TopScreen{.columns = 200, .rows = 60},
        TopScreen{.columns = 3, .rows = 2}, TopScreen{.columns = 1, .rows = 1}}) {
    for (int pane = 0; pane < 4; ++pane) {
      TopScreen screen = size;
      screen.pane = static_cast<TopPane>(pane);
      const auto lines = TopLines(StatusForTests(), screen);
      EXPECT_THAT(lines, SizeIs(size.rows));
      for (const std::string& line : lines) EXPECT_LE(line.size(), size.columns);
    }
  }
}

TEST(TopViewTest, ShowsHealthPaneEventsAndKeys) {
  const std::string text = Text(StatusForTests(), {.columns = 80, .rows = 24});
  EXPECT_THAT(text, HasSubstr("job mnist, epoch 5, up 12 s: unhealthy\n"));
  EXPECT_THAT(text, HasSubstr("  group 1 is broken: worker-2 dead: silent for 2.6 s\n"));
  EXPECT_THAT(text, HasSubstr("\nWORKER    GROUP/RANK  SHARE"));
  EXPECT_THAT(text, HasSubstr("\n     4.2 s  worker-2 dead: silent for 2.6 s\n"));
  EXPECT_THAT(text,
              HasSubstr("\n[1 groups] 2 nodes  3 tables  4 events   s slowest first  q quit"));
}

TEST(TopViewTest, PanesShowQueuesTablesAndEvents) {
  TopScreen screen{.pane = TopPane::kNodes, .columns = 200, .rows = 60};
  EXPECT_THAT(Text(StatusForTests(), screen),
              HasSubstr("\nserver-0  392 KiB       0 B     0 B      10     12        0"));
  screen.pane = TopPane::kTables;
  EXPECT_THAT(Text(StatusForTests(), screen), HasSubstr("hidden/weight  784x128"));
  screen.pane = TopPane::kEvents;
  EXPECT_THAT(Text(StatusForTests(), screen), HasSubstr("groups formed"));
  EXPECT_THAT(Text(StatusForTests(), screen), Not(HasSubstr("WORKER")));
  const std::string all = TopText(StatusForTests());
  for (const char* part : {"WORKER ", "QUEUED", "hidden/weight", "groups formed"}) {
    EXPECT_THAT(all, HasSubstr(part));
  }
}

TEST(TopViewTest, SlowestWorkersComeFirstWhenAsked) {
  proto::StatusReply status = StatusForTests();
  status.mutable_nodes(2)->mutable_pace()->set_slowness(9);
  TopScreen screen;
  std::string text = Text(status, screen);
  EXPECT_LT(text.find("\nworker-0 "), text.find("\nworker-1 "));
  screen.order = TopOrder::kSlowestFirst;
  text = Text(status, screen);
  EXPECT_GT(text.find("\nworker-0 "), text.find("\nworker-1 "));
}

TEST(TopViewTest, TextFromOutsideCannotSteerTheTerminal) {
  proto::StatusReply status = StatusForTests();
  status.mutable_events(1)->set_text("bad \033[2J \xc3\xa4");
  const std::string text = Text(status, {});
  EXPECT_THAT(text, HasSubstr("bad ?[2J \xc3\xa4"));
  EXPECT_THAT(text, Not(HasSubstr("\033")));
  const std::string long_text(67, 'x');
  status.mutable_events(1)->set_text(absl::StrCat(long_text, "\xc3\xa4"));
  EXPECT_THAT(Text(status, {}), HasSubstr(absl::StrCat(long_text, "\n")));
}

}  // namespace
}  // namespace covey::cli
