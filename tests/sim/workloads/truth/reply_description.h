// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tests/sim/checkers/shard_reply.h"

namespace covey::sim {

// "shard 0 generation 3 version 17", for violations. Pure.
std::string Describe(const ShardReply& reply);

}  // namespace covey::sim
