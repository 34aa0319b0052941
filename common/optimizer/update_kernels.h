// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/optimizer/kernels.h"
#include "common/optimizer/trust_kernels.h"

namespace covey {

// The kernels that optimizers call, all of them over one kind of memory. Null: there is none for
// that memory. A value.
struct UpdateKernels {
  decltype(&UpdateSgd) sgd = nullptr;
  decltype(&UpdateMomentum) momentum = nullptr;
  decltype(&UpdateNesterov) nesterov = nullptr;
  decltype(&UpdateAdagrad) adagrad = nullptr;
  decltype(&UpdateAdam) adam = nullptr;  // and AdamW
  decltype(&UpdateLars) lars = nullptr;
  decltype(&UpdateLamb) lamb = nullptr;
  decltype(&HoldDelayedNesterov) hold_delayed_nesterov = nullptr;
  decltype(&ReleaseDelayedNesterov) release_delayed_nesterov = nullptr;
};

// Those of kernels.h and trust_kernels.h.
inline constexpr UpdateKernels kHostKernels = {.sgd = UpdateSgd,
                                               .momentum = UpdateMomentum,
                                               .nesterov = UpdateNesterov,
                                               .adagrad = UpdateAdagrad,
                                               .adam = UpdateAdam,
                                               .lars = UpdateLars,
                                               .lamb = UpdateLamb,
                                               .hold_delayed_nesterov = HoldDelayedNesterov,
                                               .release_delayed_nesterov = ReleaseDelayedNesterov};

}  // namespace covey
