// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

namespace covey {

// What a table asks to be done about late gradients; the default is to do nothing.
struct AsynchronyRules {
  // Lambda of CompensateDelay, for the mean gradient of a push. In [0, 10]; 0 = off.
  double delay_compensation = 0;
  // Divides the learning rate by 1 + staleness.
  bool scales_rate = false;
  // Momentum that the governor keeps.
  std::optional<double> target_momentum = std::nullopt;
};

}  // namespace covey
