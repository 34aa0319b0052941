#include "client/cli/report.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/figures.h"
#include "client/cli/plot.h"

namespace covey::cli {
namespace {

using Measure = double (*)(const HistoryPoint& point);

std::string GroupPlot(const RunHistory& history, const std::string& title, const char* x_label,
                      const char* y_label, Measure x, Measure y) {
  Plot plot = {.title = title, .x_label = x_label, .y_label = y_label, .series = {}};
  for (const GroupHistory& group : history.groups()) {
    PlotSeries& series = plot.series.emplace_back();
    series.name = absl::StrCat("group ", group.group);
    for (const HistoryPoint& point : group.points) series.points.push_back({x(point), y(point)});
  }
  return RenderPlot(plot);
}

// Rates come with the first full interval; until then they are 0.
bool IsMeasured(const HistoryPoint& point) { return point.samples_per_second > 0; }

std::string Plots(const RunHistory& history) {
  const Measure seconds = [](const HistoryPoint& point) { return point.seconds; };
  const Measure samples = [](const HistoryPoint& point) {
    return static_cast<double>(point.samples);
  };
  const Measure loss = [](const HistoryPoint& point) { return point.loss; };
  const Measure speed = [](const HistoryPoint& point) {
    return IsMeasured(point) ? point.samples_per_second : NAN;
  };
  const Measure staleness = [](const HistoryPoint& point) {
    return IsMeasured(point) ? point.staleness : NAN;
  };
  const char* const kTime = "seconds since the start";
  return absl::StrCat(
      "<div class=\"plots\">\n",
      GroupPlot(history, "Loss over samples", "samples of the group", "loss", samples, loss),
      GroupPlot(history, "Loss over time", kTime, "loss", seconds, loss),
      GroupPlot(history, "Throughput", kTime, "samples per second", seconds, speed),
      GroupPlot(history, "Staleness", kTime, "updates by others", seconds, staleness), "</div>\n");
}

}  // namespace

std::string RenderReport(const Report& report) {
  std::string content;
  if (!report.result.empty()) content = RenderTiles(report.result);
  absl::StrAppend(&content, "<h2>Course</h2>\n", Plots(report.history), "<h2>Configuration</h2>\n",
                  RenderRows(report.configuration));
  if (!report.history.events().empty()) {
    Report::Rows events;
    for (const HistoryEvent& event : report.history.events()) {
      events.emplace_back(ShowSeconds(event.seconds), event.text);
    }
    absl::StrAppend(&content, "<h2>Decisions of the scheduler</h2>\n", RenderRows(events));
  }
  return RenderPage({.title = report.title,
                     .outcome = report.outcome,
                     .failed = report.failed,
                     .content = std::move(content)});
}

}  // namespace covey::cli
