// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/optimizer/optimizer.h"
#include "common/optimizer/update_kernels.h"

namespace covey {

// One maker per file of this folder; MakeOptimizer calls that of the config's kind. Precondition:
// the config is valid, and the kernels that the kind calls are there.
std::unique_ptr<Optimizer> MakeSgd(const OptimizerConfig& config, const UpdateKernels& kernels);
std::unique_ptr<Optimizer> MakeMomentum(const OptimizerConfig& config,
                                        const UpdateKernels& kernels);  // Nesterov too
std::unique_ptr<Optimizer> MakeAdagrad(const OptimizerConfig& config, const UpdateKernels& kernels);
std::unique_ptr<Optimizer> MakeAdam(const OptimizerConfig& config,
                                    const UpdateKernels& kernels);  // AdamW too
std::unique_ptr<Optimizer> MakeLars(const OptimizerConfig& config, const UpdateKernels& kernels);
std::unique_ptr<Optimizer> MakeLamb(const OptimizerConfig& config, const UpdateKernels& kernels);
std::unique_ptr<Optimizer> MakeDelayedNesterov(const OptimizerConfig& config,
                                               const UpdateKernels& kernels);
std::unique_ptr<Optimizer> MakeVectors(const OptimizerConfig& config, const UpdateKernels& kernels);

}  // namespace covey
