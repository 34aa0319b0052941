// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace covey::cli {

struct PlotPoint {
  double x = 0;
  double y = 0;
};

// One line of a plot. Points that are not finite leave a gap.
struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;
};

// A moment on the x axis, with a short name above it.
struct PlotMark {
  double x = 0;
  std::string name;
};

struct Plot {
  std::string title;
  std::string x_label;
  std::string y_label;
  std::vector<PlotSeries> series;
  // Vertical lines across the plot; marks outside its range are left out, and so are names that
  // would overlap.
  std::vector<PlotMark> marks = {};
};

// The number of colors; series beyond them start again with the first.
inline constexpr size_t kPlotColors = 8;

// A figure in SVG with axes, grid and legend; both axes include 0. Colors come from the surrounding
// style sheet: classes plot-line-0 … for strokes, plot-dot-0 … for fills, and plot-grid, plot-axis,
// plot-mark, plot-text. Pure.
std::string RenderPlot(const Plot& plot);

// Round numbers from `low` to at least `high`, about `count` of them; `low` < `high`, finite.
std::vector<double> AxisTicks(double low, double high, int count);

}  // namespace covey::cli
