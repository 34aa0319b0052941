// SPDX-License-Identifier: Apache-2.0
#include "client/cli/report/report.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/console/figures.h"
#include "client/cli/report/plot.h"
#include "client/step_times.h"

namespace covey::cli {
namespace {

// More lines than these would hide the curves.
constexpr size_t kMarksMax = 100;

using Measure = double (*)(const HistoryPoint& point);

std::string GroupPlot(const RunHistory& history, const std::string& title, const char* x_label,
                      const char* y_label, Measure x, Measure y,
                      const std::vector<PlotMark>& marks = {}) {
  Plot plot = {
      .title = title, .x_label = x_label, .y_label = y_label, .series = {}, .marks = marks};
  for (const GroupHistory& group : history.groups()) {
    PlotSeries& series = plot.series.emplace_back();
    series.name = absl::StrCat("group ", group.group);
    for (const HistoryPoint& point : group.points) series.points.push_back({x(point), y(point)});
  }
  return RenderPlot(plot);
}

// Rates begin with the first full interval; until then they are 0.
bool IsMeasured(const HistoryPoint& point) { return point.samples_per_second > 0; }

// Events while groups were training, by their number from 1. Nodes that joined before or left
// afterwards explain no curve.
std::vector<PlotMark> Marks(const RunHistory& history) {
  double first = INFINITY;
  double last = -INFINITY;
  for (const GroupHistory& group : history.groups()) {
    if (group.points.empty()) continue;
    first = std::min(first, group.points.front().seconds);
    last = std::max(last, group.points.back().seconds);
  }
  std::vector<PlotMark> marks;
  for (size_t i = 0; i < history.events().size() && marks.size() < kMarksMax; ++i) {
    const double at = history.events()[i].seconds;
    if (at >= first && at <= last) marks.push_back({.x = at, .name = absl::StrCat(i + 1)});
  }
  return marks;
}

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
  // As fractions of a step: 0 = no waiting.
  const Measure group_wait = [](const HistoryPoint& point) {
    const client::StepTimes& times = point.step_times;
    return times.total() > 0 ? times.group / times.total() : NAN;
  };
  const Measure server_wait = [](const HistoryPoint& point) {
    const client::StepTimes& times = point.step_times;
    return times.total() > 0 ? times.servers / times.total() : NAN;
  };
  const std::vector<PlotMark> marks = Marks(history);
  const char* const kTime = "seconds since the start";
  return absl::StrCat(
      "<div class=\"plots\">\n",
      GroupPlot(history, "Loss over samples", "samples of the group", "loss", samples, loss),
      GroupPlot(history, "Loss over time", kTime, "loss", seconds, loss, marks),
      GroupPlot(history, "Throughput", kTime, "samples per second", seconds, speed, marks),
      GroupPlot(history, "Waiting for the group", kTime, "fraction of a step", seconds, group_wait,
                marks),
      GroupPlot(history, "Waiting for servers", kTime, "fraction of a step", seconds, server_wait,
                marks),
      GroupPlot(history, "Staleness", kTime, "updates by others", seconds, staleness, marks),
      "</div>\n");
}

}  // namespace

std::string RenderReport(const Report& report) {
  std::string content;
  if (!report.result.empty()) content = RenderTiles(report.result);
  if (!report.incidents.empty()) {
    absl::StrAppend(&content, "<h2>Losses and their consequences</h2>\n",
                    RenderRows(report.incidents));
  }
  absl::StrAppend(&content, "<h2>Course</h2>\n", Plots(report.history), "<h2>Configuration</h2>\n",
                  RenderRows(report.configuration));
  if (!report.history.events().empty()) {
    Report::Rows events;
    for (const HistoryEvent& event : report.history.events()) {
      events.emplace_back(absl::StrCat(events.size() + 1, " at ", ShowSeconds(event.seconds)),
                          event.text);
    }
    absl::StrAppend(&content, "<h2>Decisions of the scheduler</h2>\n", RenderRows(events));
  }
  return RenderPage({.title = report.title,
                     .outcome = report.outcome,
                     .failed = report.failed,
                     .content = std::move(content)});
}

}  // namespace covey::cli
