// SPDX-License-Identifier: Apache-2.0
#include "client/cli/report/plot.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/console/figures.h"
#include "client/cli/report/markup.h"

namespace covey::cli {
namespace {

// In units of the drawing, which scales to any width.
constexpr double kWidth = 560;
constexpr double kHeight = 300;
constexpr double kLeft = 64;
constexpr double kRight = 532;
constexpr double kTop = 44;
constexpr double kBottom = 252;
constexpr double kLegendEntryWidth = 80;
constexpr double kMarkLetterWidth = 8;

// One axis: maps values to the drawing.
class Axis {
 public:
  Axis(const std::vector<double>& ticks, double from, double to)
      : ticks_(ticks), from_(from), to_(to) {}

  const std::vector<double>& ticks() const { return ticks_; }
  double Place(double value) const {
    return from_ + (value - ticks_.front()) / (ticks_.back() - ticks_.front()) * (to_ - from_);
  }

 private:
  const std::vector<double> ticks_;
  const double from_;
  const double to_;
};

bool IsFinite(const PlotPoint& point) { return std::isfinite(point.x) && std::isfinite(point.y); }

struct Range {
  double low = 0;
  double high = 0;

  void Include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

std::string Text(double x, double y, const char* anchor, const std::string& text) {
  return absl::StrFormat(R"(<text class="plot-text" x="%.1f" y="%.1f" text-anchor="%s">%s</text>)",
                         x, y, anchor, EscapeMarkup(text));
}

std::string Line(const char* style, double x1, double y1, double x2, double y2) {
  return absl::StrFormat(R"(<line class="%s" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>)", style, x1,
                         y1, x2, y2);
}

std::string Grid(const Plot& plot, const Axis& x, const Axis& y) {
  std::string svg;
  for (const double tick : y.ticks()) {
    const double place = y.Place(tick);
    absl::StrAppend(&svg, Line("plot-grid", kLeft, place, kRight, place),
                    Text(kLeft - 8, place + 4, "end", ShowNumber(tick)));
  }
  for (const double tick : x.ticks()) {
    const double place = x.Place(tick);
    absl::StrAppend(&svg, Line("plot-grid", place, kTop, place, kBottom),
                    Text(place, kBottom + 18, "middle", ShowNumber(tick)));
  }
  absl::StrAppend(&svg, Line("plot-axis", kLeft, kTop, kLeft, kBottom),
                  Line("plot-axis", kLeft, kBottom, kRight, kBottom),
                  Text((kLeft + kRight) / 2, kHeight - 10, "middle", plot.x_label),
                  Text(4, kTop - 12, "start", plot.y_label));
  return svg;
}

std::string Legend(const Plot& plot) {
  std::string svg;
  const size_t shown = std::min(plot.series.size(), size_t{5});
  for (size_t i = 0; i < shown; ++i) {
    const double right = kRight - kLegendEntryWidth * static_cast<double>(shown - 1 - i);
    absl::StrAppendFormat(&svg, R"(<circle class="plot-dot-%d" cx="%.1f" cy="%.1f" r="4"/>)",
                          i % kPlotColors, right - kLegendEntryWidth + 20, kTop - 16);
    absl::StrAppend(&svg,
                    Text(right - kLegendEntryWidth + 28, kTop - 12, "start", plot.series[i].name));
  }
  return svg;
}

std::string Marks(const Plot& plot, const Axis& x) {
  std::string svg;
  double free_from = kLeft;
  for (const PlotMark& mark : plot.marks) {
    if (!std::isfinite(mark.x) || mark.x < x.ticks().front() || mark.x > x.ticks().back()) continue;
    const double place = x.Place(mark.x);
    absl::StrAppend(&svg, Line("plot-mark", place, kTop, place, kBottom));
    const double width = kMarkLetterWidth * static_cast<double>(mark.name.size());
    if (place - width / 2 < free_from) continue;
    absl::StrAppend(&svg, Text(place, kTop + 10, "middle", mark.name));
    free_from = place + width / 2;
  }
  return svg;
}

// A path for each run of finite points; a dot where a run has only one.
std::string Curve(const PlotSeries& series, size_t color, const Axis& x, const Axis& y) {
  std::string svg;
  const auto end = series.points.end();
  for (auto begin = series.points.begin();;) {
    begin = std::find_if(begin, end, IsFinite);
    if (begin == end) return svg;
    const auto gap = std::find_if_not(begin, end, IsFinite);
    if (gap - begin == 1) {
      absl::StrAppendFormat(&svg, R"(<circle class="plot-dot-%d" cx="%.1f" cy="%.1f" r="3"/>)",
                            color, x.Place(begin->x), y.Place(begin->y));
    } else {
      absl::StrAppendFormat(&svg, R"(<polyline class="plot-line-%d" points=")", color);
      for (auto point = begin; point != gap; ++point) {
        absl::StrAppendFormat(&svg, "%.1f,%.1f ", x.Place(point->x), y.Place(point->y));
      }
      absl::StrAppend(&svg, R"("/>)");
    }
    begin = gap;
  }
}

}  // namespace

std::vector<double> AxisTicks(double low, double high, int count) {
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {5, 2, 1}) {
    if (factor * power >= rough) step = factor * power;
  }
  std::vector<double> ticks;
  const double first = std::floor(low / step);
  for (int i = 0; ticks.empty() || ticks.back() < high; ++i) ticks.push_back((first + i) * step);
  return ticks;
}

std::string RenderPlot(const Plot& plot) {
  Range x_range, y_range;
  bool any = false;
  for (const PlotSeries& series : plot.series) {
    for (const PlotPoint& point : series.points) {
      if (!IsFinite(point)) continue;
      any = true;
      x_range.Include(point.x);
      y_range.Include(point.y);
    }
  }
  // Avoids a division by zero.
  if (x_range.low == x_range.high) x_range.high = 1;
  if (y_range.low == y_range.high) y_range.high = 1;

  std::string svg = absl::StrFormat(
      R"(<figure><figcaption>%s</figcaption><svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">)",
      EscapeMarkup(plot.title), kWidth, kHeight, EscapeMarkup(plot.title));
  const Axis x(AxisTicks(x_range.low, x_range.high, 6), kLeft, kRight);
  const Axis y(AxisTicks(y_range.low, y_range.high, 5), kBottom, kTop);
  absl::StrAppend(&svg, Grid(plot, x, y), Marks(plot, x), Legend(plot));
  for (size_t i = 0; i < plot.series.size(); ++i) {
    absl::StrAppend(&svg, Curve(plot.series[i], i % kPlotColors, x, y));
  }
  if (!any) {
    absl::StrAppend(&svg, Text((kLeft + kRight) / 2, (kTop + kBottom) / 2, "middle", "no data"));
  }
  absl::StrAppend(&svg, "</svg></figure>\n");
  return svg;
}

}  // namespace covey::cli
