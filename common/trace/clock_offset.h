// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>

#include "absl/time/time.h"

namespace covey {

// How another process's steady clock stands to this one's: at this process's time t the other shows
// t + offset + drift * (t - at). Its error is at most `error`, unless the way there and the way
// back differ in time by more than their sum at the best exchange.
struct ClockLine {
  absl::Time at;
  absl::Duration offset;
  double drift = 0;
  absl::Duration error;

  // The other clock's time at this process's time `t`.
  absl::Time Map(absl::Time t) const;
};

// Finds that line from requests and their answers, which each tell the other clock's time. As in
// Cristian's algorithm (1989) an exchange that took r says where the other clock stands with an
// error of at most r / 2, so the shortest exchange of each 5 s counts, and the others, which have
// waited somewhere, do not. Through the counted ones of the last 2 min goes a line of least
// squares: clocks differ in speed by up to 100 ppm, which is 1 ms in 10 s.
//
// A value; confined to one thread. Deterministic.
class ClockOffset {
 public:
  // A request that was sent at `sent`, and its answer, which arrived at `received` and says that
  // the other clock showed `other` in between. Times in an impossible order are ignored. An answer
  // that contradicts all earlier ones, as after a restart of the other process on another machine,
  // replaces them.
  void Add(absl::Time sent, absl::Time received, absl::Time other);

  // Nothing before the first answer.
  std::optional<ClockLine> line() const;

 private:
  struct Exchange {
    absl::Time at;  // half way
    absl::Duration offset;
    absl::Duration error;
  };

  std::deque<Exchange> best_;  // of each window, oldest first; the last window is under way
  absl::Time window_end_ = absl::InfinitePast();
};

}  // namespace covey
