// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "common/tensor/element_span.h"
#include "common/tensor/reduce_op.h"

namespace covey {

// into[i] = into[i] op x[i], in one pass over memory. `x` is as many elements of the same type, at
// any alignment, as they came off the wire; the two do not overlap. A sum of float32 has the bits
// of AddInto (kernels.h), which is what to call where the type is known.
//
// Pure and thread-safe. Deterministic, as the functions of kernels.h. Preconditions: equal sizes;
// not kByte.
void ReduceInto(ReduceOp op, ElementSpan into, std::span<const uint8_t> x);

}  // namespace covey
