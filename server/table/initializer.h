// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "common/table/initializer_config.h"

namespace covey::server {

// Fills `values`, the first of which is element `first_element` of the table. Pure; a range that is
// split gives the same bits. Precondition: the config is valid. Takes about 3 ns per element for
// uniform, 18 ns for normal: 5 ms for a shard of 1 MiB.
void Initialize(const InitializerConfig& config, uint64_t first_element, std::span<float> values);

}  // namespace covey::server
