// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace covey::server {

// Whether an update may stand for so many training examples, after `so_far` in all updates before.
// INVALID_ARGUMENT: it stands for none, or the total would overflow. Pure.
absl::Status CheckSamples(uint64_t samples, uint64_t so_far);

}  // namespace covey::server
