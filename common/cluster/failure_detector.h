// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace covey {

// Tells from the heartbeats of one node when to give it up.
//
// Accrual (Hayashibara et al. 2004, "The phi accrual failure detector"): suspicion is
//     phi(t) = -log10 P(a live node is silent for t)
// and the node is dead once phi reaches a threshold: at 8, one wrong verdict per 10^8 silences. The
// paper takes intervals between heartbeats to be normal, whose thin tail convicts live nodes when
// messages are lost. Here each beat is lost or late with a probability p, estimated from the beats
// seen, so silence is geometric:
//     phi(t) = t / beat * log10(1 / p).
// Clean networks have p near 0, and the floor decides: dead after 2.5 s. At 30 % loss it takes 7.6
// s, and no detector could be both much faster and right, since five lost beats in a row
// happen every five minutes there.
//
// A value; deterministic.
class FailureDetector {
 public:
  struct Options {
    absl::Duration beat = absl::Milliseconds(500);
    // Never dead before so much silence.
    absl::Duration silence_min = absl::Milliseconds(2500);
    double threshold = 8;
  };

  // Silence counts from `since`, which may lie ahead (a period of grace).
  FailureDetector(const Options& options, absl::Time since) : options_(options), last_(since) {}

  void Beat(absl::Time now);
  // Silence of `pause` was the observer's own: it counts for nothing.
  void DiscountPause(absl::Duration pause) { last_ += pause; }

  absl::Duration Silence(absl::Time now) const;
  double Suspicion(absl::Time now) const;
  // Dead from this time on, unless it beats before.
  absl::Time DeadAt() const;

 private:
  Options options_;
  absl::Time last_;
  double loss_ = 0;  // p
};

}  // namespace covey
