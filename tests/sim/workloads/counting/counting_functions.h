// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/net/message.h"
#include "common/vectors/vector_function.h"

namespace covey::sim {

// Counting with functions. A function changes all elements of a vector, so a slot is a bit there:
// the push of slot p adds 2^(p % 20) to each element of vector 1 + p / 20, with vector 0, of ones.
// Any answer shows which pushes a shard contains; one that was applied twice shows as 0, and makes
// another one appear.

// Of a table with so many slots, besides the values.
uint32_t VectorsOf(uint64_t slots);
std::vector<VectorFunction> FunctionsOfPush(uint64_t slot);
uint64_t SlotOfFunction(const proto::VectorFunction& function);
// Asks for all slots.
std::vector<VectorQuery> QueriesOf(uint64_t slots);
// For each slot 1 where the push is contained, and 0 where it is not; 2 where an answer is no sum
// of bits. Precondition: they answer QueriesOf.
std::vector<float> SlotsIn(std::span<const VectorAnswer> answers, uint64_t slots);

}  // namespace covey::sim
