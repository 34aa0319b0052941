// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "common/base/random.h"

namespace covey {

// One of the inputs with one to four changes: bytes and bits that differ, ranges that are gone,
// double or from another input, and numbers at the ends of their ranges. Pure. Precondition: there
// is an input.
std::string Mutated(std::span<const std::string> inputs, Random& random);

}  // namespace covey
