// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace covey {

// A worker's report about its own computation: means over its last report interval.
struct PaceReport {
  // Seconds of its own work per step; those of the slowest step, 0 = not measured.
  double compute_seconds = 0;
  double slowest_seconds = 0;
  double samples_per_step = 0;
  // Since the worker started: steps that its group finished, and how many of them went without its
  // gradient.
  uint64_t steps = 0;
  uint64_t steps_aside = 0;
};

// How fast one worker computes, estimated from its reports: a steady pace that isolated hiccups do
// not move, and how frequent the hiccups are. A value; deterministic.
class WorkerPace {
 public:
  struct Options {
    // The first reports contain page faults and cold caches.
    size_t warm_up_reports = 2;
    // With fewer reports, the pace is unknown.
    size_t reports_min = 5;
    // Weight of the newest report in the averages. A lognormal noise with sigma 0.3, which is a
    // lot, then leaves 7 %, and a worker that has become twice as slow is at 1.5 after 7 reports.
    double smoothing = 0.1;
    // A report that is this many times slower than the usual one is a hiccup, not a change of pace,
    double hiccup_ratio = 3;
    // unless this many come in a row.
    size_t pace_reports = 3;
    // A slow step inside a report counts as a hiccup only when it cost at least this fraction of
    // the report's time: delays that the operating system adds to steps of a millisecond do not
    // matter.
    double hiccup_cost_min = 0.05;
    // Hiccups are counted over this many reports: a minute.
    size_t window_reports = 60;
    // The mean step time is restarted when the samples per step change by more than this.
    double new_samples_ratio = 0.1;
  };

  explicit WorkerPace(const Options& options) : options_(options) {}

  // Ignores reports without work or samples.
  void Add(const PaceReport& report);

  // False: the numbers below are undefined yet.
  bool known() const { return reports_ >= options_.reports_min; }
  // Steady seconds per sample; its standard error, relative.
  double seconds_per_sample() const { return pace_; }
  double error() const;
  // Steady seconds per step at the present number of samples; and that number.
  double step_seconds() const { return step_seconds_; }
  double samples_per_step() const { return samples_; }
  // Reports in the window, and hiccups among them.
  size_t window() const { return window_.size(); }
  size_t hiccups() const;
  // Fraction of the steps, since the report before the last, that went on without this member.
  double aside() const { return aside_; }

 private:
  struct Interval {
    double seconds_per_sample = 0;
    size_t slow_in_a_row = 0;
    bool hiccup = false;
  };
  double UsualPace() const;  // median over the window

  Options options_;
  size_t skipped_ = 0;
  size_t reports_ = 0;
  double pace_ = 0;
  double last_ = 0;
  double variance_ = 0;  // of a report, relative
  size_t step_reports_ = 0;
  double step_seconds_ = 0;
  double samples_ = 0;
  uint64_t steps_ = 0;
  uint64_t steps_aside_ = 0;
  double aside_ = 0;
  std::deque<Interval> window_;
};

}  // namespace covey
