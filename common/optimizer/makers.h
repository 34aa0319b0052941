// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/optimizer/optimizer.h"

namespace covey {

// One maker per file of this folder; MakeOptimizer calls that of the config's kind. Precondition:
// the config is valid.
std::unique_ptr<Optimizer> MakeSgd(const OptimizerConfig& config);
std::unique_ptr<Optimizer> MakeMomentum(const OptimizerConfig& config);  // and Nesterov
std::unique_ptr<Optimizer> MakeAdagrad(const OptimizerConfig& config);
std::unique_ptr<Optimizer> MakeAdam(const OptimizerConfig& config);  // and AdamW
std::unique_ptr<Optimizer> MakeLars(const OptimizerConfig& config);
std::unique_ptr<Optimizer> MakeLamb(const OptimizerConfig& config);
std::unique_ptr<Optimizer> MakeDelayedNesterov(const OptimizerConfig& config);

}  // namespace covey
