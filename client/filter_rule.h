// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace covey::client {

// Which rows of a gradient can wait, because sending them now would change little. Plain value;
// deterministic.
struct FilterRule {
  enum class Kind {
    // For tables whose optimizer is FTRL with L1. A row of zeros can wait while all elements of its
    // gradient are below the threshold: zero is the best weight while |gradient| <= l1 (the
    // Karush-Kuhn-Tucker condition; Li et al., OSDI 2014). The threshold is the table's l1, divided
    // by the number of programs that push, because each of them holds back as much.
    kKkt,
    // For any optimizer. A row can wait while the norm of its gradient is below the threshold times
    // the norm of the row; the threshold falls with 1 / sqrt(number of the push) (the significance
    // filter; Hsieh et al., Gaia, NSDI 2017). Gaia compares updates, and a client knows gradients,
    // so the threshold has to suit the learning rate. A row of zeros never waits.
    kSignificance,
  };

  Kind kind = Kind::kKkt;
  // At least 0, where nothing waits.
  double threshold = 0;

  // `gradient`: as the optimizer takes it, the sum divided by the samples; with what has waited
  // before. `push` counts from 1. A row or gradient with NaN never waits.
  bool CanWait(std::span<const float> row, std::span<const float> gradient, uint64_t push) const;
};

}  // namespace covey::client
