// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/tensor/wire_format.h"

namespace covey::sim {

// The formats in which workloads send gradients and values. The others differ from these in their
// codecs alone, and a seed means the same run however many there are.
inline constexpr WireFormat kDrawnFormats[] = {WireFormat::kFloat32, WireFormat::kFloat16,
                                               WireFormat::kBfloat16, WireFormat::kInt8Block};

}  // namespace covey::sim
