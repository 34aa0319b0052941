// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/bench/measure/turns.h"

namespace covey::cli {

// The updates of SGD, momentum and Adam as a server applies them, shard by shard on one core:
// "covey kernel sgd", … in GB/s of bytes moved, beside "memory stream" of the same turns. Values,
// gradient and optimizer state are arrays of `bytes` each.
std::vector<Contender> MakeKernelLoad(uint64_t bytes, absl::Duration duration);

}  // namespace covey::cli
