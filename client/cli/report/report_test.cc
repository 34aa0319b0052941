// SPDX-License-Identifier: Apache-2.0
#include "client/cli/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "client/cli/report/markup.h"
#include "client/cli/report/plot.h"
#include "client/cli/testing/status_fixture.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

size_t Count(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(MarkupTest, NothingIsTakenForMarkup) {
  EXPECT_EQ(EscapeMarkup("<a href='x'>&\"\x01"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot; ");
}

TEST(PlotTest, TicksAreRoundAndCoverTheRange) {
  EXPECT_THAT(AxisTicks(0, 1, 5), ElementsAre(0, 0.2, 0.4, 0.6000000000000001, 0.8, 1));
  EXPECT_THAT(AxisTicks(0, 2300, 5), ElementsAre(0, 500, 1000, 1500, 2000, 2500));
  EXPECT_THAT(AxisTicks(-3, 7, 5), ElementsAre(-4, -2, 0, 2, 4, 6, 8));
}

TEST(PlotTest, AGapWhereAValueIsNotFinite) {
  const Plot plot = {.series = {{.name = "a", .points = {{0, 1}, {1, 2}, {2, NAN}, {3, 4}}}}};
  const std::string svg = RenderPlot(plot);
  EXPECT_EQ(Count(svg, "<polyline"), 1u);
  EXPECT_EQ(Count(svg, "<circle"), 2u) << "one in the legend, one lone point";
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(PlotTest, OnePointAtTheOriginIsADot) {
  const std::string svg = RenderPlot({.series = {{.name = "a", .points = {{0, 0}}}}});
  EXPECT_EQ(Count(svg, "<polyline"), 0u);
  EXPECT_EQ(Count(svg, "<circle"), 2u);
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

TEST(PlotTest, NothingSaysSo) { EXPECT_THAT(RenderPlot({}), HasSubstr("no data")); }

TEST(ReportTest, AnEmptyHistoryIsAPageAllTheSame) {
  const std::string html = RenderReport({.title = "run", .outcome = "done in 3 s"});
  EXPECT_THAT(html, HasSubstr("<h1>run</h1>"));
  EXPECT_EQ(Count(html, "no data"), 6u);
  EXPECT_THAT(html, Not(HasSubstr("Decisions")));
  EXPECT_THAT(html, ::testing::EndsWith("</html>\n"));
}

TEST(ReportTest, ShowsEveryGroupAndEvent) {
  Report report = {.title = "run", .outcome = "worker-2 died", .failed = true};
  proto::StatusReply status = StatusForTests();
  report.history.Add(absl::Seconds(13), status);
  status.mutable_nodes(1)->mutable_progress()->set_step(50);
  status.clear_events();
  report.history.Add(absl::Seconds(14), status);
  const std::string html = RenderReport(report);
  EXPECT_EQ(Count(html, "<polyline"), 6u);
  EXPECT_EQ(Count(html, "group 0"), 6u);
  EXPECT_THAT(html, HasSubstr("class=\"outcome failed\""));
  EXPECT_THAT(html, HasSubstr("<td>2 at 4.9 s</td><td>worker-2 dead: silent for 2.6 s</td>"));
}

TEST(ReportTest, DecisionsDuringTheTrainingAreMarkedOnTheTimeLines) {
  Report report = {.title = "run", .outcome = "done"};
  proto::StatusReply status = StatusForTests();
  status.set_uptime_ms(2000);
  status.mutable_events(1)->set_at_ms(500);
  report.history.Add(absl::Seconds(2), status);  // Events before the first point.
  status.clear_events();
  status.mutable_events()->Add()->set_at_ms(4000);
  status.set_uptime_ms(5000);
  status.mutable_nodes(1)->mutable_progress()->set_step(50);
  report.history.Add(absl::Seconds(5), status);
  status.mutable_events(0)->set_at_ms(9000);  // After the last one.
  status.set_uptime_ms(10000);
  report.history.Add(absl::Seconds(10), status);
  ASSERT_EQ(report.history.events().size(), 4u);
  const std::string html = RenderReport(report);
  EXPECT_EQ(Count(html, "<line class=\"plot-mark\""), 5u) << "one on each plot over time";
  EXPECT_EQ(Count(html, "y=\"54.0\" text-anchor=\"middle\">3</text>"), 5u);
}

TEST(PlotTest, MarksOutsideAreLeftOutAndNamesDoNotCoverEachOther) {
  const Plot plot = {.series = {{.name = "a", .points = {{0, 1}, {10, 2}}}},
                     .marks = {{5, "17"}, {5.1, "18"}, {7.5, "19"}, {50, "20"}, {NAN, "21"}}};
  const std::string svg = RenderPlot(plot);
  EXPECT_EQ(Count(svg, "plot-mark"), 3u);
  EXPECT_EQ(Count(svg, ">17<"), 1u);
  EXPECT_EQ(Count(svg, ">18<"), 0u);
  EXPECT_EQ(Count(svg, ">19<"), 1u);
  EXPECT_EQ(Count(svg, ">20<"), 0u);
}

TEST(ReportTest, NamesAreNeverMarkup) {
  const std::string bad = "<script>alert('x')</script>";
  const std::string html = RenderReport(
      {.title = bad, .outcome = bad, .result = {{bad, bad}}, .configuration = {{bad, bad}}});
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_EQ(Count(html, "&lt;script&gt;"), 7u);
}

// A page opened from a mail or a build server has nothing else to load.
TEST(ReportTest, NeedsNothingFromElsewhere) {
  const std::string html = RenderReport({.title = "run"});
  for (const char* link : {"src=", "href=", "url(", "@import", "http"}) {
    EXPECT_THAT(html, Not(HasSubstr(link)));
  }
}

}  // namespace
}  // namespace covey::cli
