// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace covey {

// Decides from the heartbeats of one node when to declare it dead.
//
// Accrual (Hayashibara et al. 2004, "The phi accrual failure detector"): suspicion is
//     phi(t) = -log10 P(a live node is silent for t)
// and the node is dead once phi reaches a threshold: at 8, one wrong verdict per 10^8 silences. The
// paper takes intervals between heartbeats to be normal, whose thin tail condemns live nodes when
// messages are lost. Here each beat is lost or late with a probability p, estimated from the beats
// seen, so silence is geometric:
//     phi(t) = t / beat * log10(1 / p).
// On networks without loss p is near 0, and silence_min decides: dead after 2.5 s. At 30 % loss it
// takes 7.6 s. No detector could be both much faster and correct there, since five beats in a row
// are lost every five minutes.
//
// A value; deterministic.
class FailureDetector {
 public:
  struct Options {
    absl::Duration beat = absl::Milliseconds(500);
    // A node is never declared dead after less silence than this.
    absl::Duration silence_min = absl::Milliseconds(2500);
    double threshold = 8;
  };

  // Silence counts from `since`, which may be in the future (a grace period).
  FailureDetector(const Options& options, absl::Time since) : options_(options), last_(since) {}

  void Beat(absl::Time now);
  // The observer itself was paused for `pause`: that silence does not count.
  void DiscountPause(absl::Duration pause) { last_ += pause; }

  absl::Duration Silence(absl::Time now) const;
  double Suspicion(absl::Time now) const;
  // The time at which the node is declared dead unless it beats before.
  absl::Time DeadAt() const;

 private:
  Options options_;
  absl::Time last_;
  double loss_ = 0;  // p
};

}  // namespace covey
