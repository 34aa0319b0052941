// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace covey {

// How a table treats late gradients; by default like all others.
struct AsynchronyRules {
  // Lambda of CompensateDelay, for the mean gradient of a push. In [0, 10]; 0 = off.
  double delay_compensation = 0;
  // Divides the learning rate by 1 + staleness.
  bool scales_rate = false;
  // The momentum that the governor keeps the table at.
  std::optional<double> target_momentum = std::nullopt;
};

}  // namespace covey
