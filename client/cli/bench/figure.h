// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace covey::cli {

// One row of `covey bench`: the same measurement repeated. Immutable value.
struct Figure {
  // "covey push", "raw zeromq", …
  std::string what;
  // "tcp" or "ipc".
  std::string transport;
  // Payload of one operation.
  uint64_t bytes = 0;
  // "GB/s" (10^9 payload bytes in one direction per second) or "us".
  std::string unit;
  // One number per repetition, in the order of measurement.
  std::vector<double> repetitions;

  double Median() const;
  double Smallest() const;
  double Largest() const;
};

// The value below which `fraction` of the sorted `values` lie; the nearest measured one.
// Precondition: not empty, 0 <= fraction <= 1.
double Quantile(std::vector<double> values, double fraction);

// An array of {"what", "transport", "bytes", "unit", "median", "min", "max", "repetitions"}, in one
// line.
std::string FiguresAsJson(const std::vector<Figure>& figures);
// INVALID_ARGUMENT: the text is not in the format of FiguresAsJson.
absl::StatusOr<std::vector<Figure>> FiguresFromJson(const std::string& text);
// One aligned line, without line break.
std::string FigureAsLine(const Figure& figure);
// A heading, and one line per figure.
std::string FiguresAsTable(const std::vector<Figure>& figures);

}  // namespace covey::cli
