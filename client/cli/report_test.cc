#include "client/cli/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "client/cli/markup.h"
#include "client/cli/plot.h"
#include "client/cli/status_fixture.h"

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
  EXPECT_EQ(Count(html, "no data"), 4u);
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
  EXPECT_EQ(Count(html, "<polyline"), 4u);
  EXPECT_EQ(Count(html, "group 0"), 4u);
  EXPECT_THAT(html, HasSubstr("class=\"outcome failed\""));
  EXPECT_THAT(html, HasSubstr("<td>4.9 s</td><td>worker-2 dead: silent for 2.6 s</td>"));
}

TEST(ReportTest, NamesAreNeverMarkup) {
  const std::string bad = "<script>alert('x')</script>";
  const std::string html = RenderReport(
      {.title = bad, .outcome = bad, .result = {{bad, bad}}, .configuration = {{bad, bad}}});
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_EQ(Count(html, "&lt;script&gt;"), 7u);
}

// Opened from a mail or a build server, there is nothing else to load.
TEST(ReportTest, NeedsNothingFromElsewhere) {
  const std::string html = RenderReport({.title = "run"});
  for (const char* link : {"src=", "href=", "url(", "@import", "http"}) {
    EXPECT_THAT(html, Not(HasSubstr(link)));
  }
}

}  // namespace
}  // namespace covey::cli
