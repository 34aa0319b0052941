// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace covey::cli {

// The resources that client and servers spent on all repetitions of a figure.
struct Cost {
  double user_core_seconds_per_gb = 0;
  double system_core_seconds_per_gb = 0;
  double context_switches_per_operation = 0;
  double page_faults_per_operation = 0;
  // Proportional set size at the end of the measurement: shared pages count in equal parts.
  uint64_t client_pss_bytes = 0;
  uint64_t server_pss_bytes = 0;
};

// One row of `covey bench`: the same measurement repeated. A value.
struct Figure {
  // "covey push", "raw zeromq", …
  std::string what;
  // "tcp", "ipc", or "memory": not between processes.
  std::string transport;
  // Payload of one operation.
  uint64_t bytes = 0;
  // "GB/s" (10^9 payload bytes in one direction per second) or "us".
  std::string unit;
  // One number per repetition, in the order of measurement.
  std::vector<double> repetitions;
  // `what` of the figures that bound this one. They have the same transport and bytes, and their
  // repetition i was measured beside repetition i of this figure.
  std::vector<std::string> limits = {};
  std::optional<Cost> cost = std::nullopt;
  // Of each repetition, with the other measurements that took turns in it: the share of the machine
  // that other programs used, and that the hypervisor took. Empty when unknown.
  std::vector<double> foreign_shares = {};
  std::vector<double> steal_shares = {};

  double Median() const;
  double Smallest() const;
  double Largest() const;
};

// A figure divided by a limit, repetition by repetition. Of a rate larger is better, of a time
// smaller.
struct LimitRatio {
  std::string limit;
  double median = 0;
  double low = 0;
  double high = 0;
};

// In the order of `figure.limits`; limits that `figures` lacks are left out.
std::vector<LimitRatio> RatiosOf(const Figure& figure, const std::vector<Figure>& figures);

// An array in one line. Each element: "what", "transport", "bytes", "unit", "median", "min", "max",
// "repetitions", "limits", "ratios" (RatiosOf), "foreign_shares", "steal_shares", and "cost" where
// it was measured.
std::string FiguresAsJson(const std::vector<Figure>& figures);
// Also takes figures without limits and cost, as older versions wrote them. INVALID_ARGUMENT: the
// text is not in the format of FiguresAsJson.
absl::StatusOr<std::vector<Figure>> FiguresFromJson(const std::string& text);
// One aligned line without line break, without ratios.
std::string FigureAsLine(const Figure& figure);
// A heading, and a line per figure with its cost and its ratios.
std::string FiguresAsTable(const std::vector<Figure>& figures);

}  // namespace covey::cli
