// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/base/strong_id.h"

namespace covey::sim {

// A machine of the simulated world; a process keeps its host over restarts.
using HostId = StrongId<struct HostIdTag, uint32_t>;

}  // namespace covey::sim
