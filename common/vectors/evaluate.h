// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "common/vectors/vector_function.h"

namespace covey {

// What a server makes of functions and queries on the range of a shard, and a client of the shards'
// answers. Pure. Preconditions: the function or query has passed its check; spans of one call have
// one length.

// `source` is empty where the kind has none. `out` is the very same memory as `in`, or overlaps no
// other span.
void ApplyFunction(const VectorFunction& function, std::span<const float> source,
                   std::span<const float> in, std::span<float> out);

// `other` is empty where the kind has none. `first_element`: place of the range in the table. The
// answer to kNorm2 is the square of the norm.
VectorAnswer AnswerOfShard(const VectorQuery& query, std::span<const float> vector,
                           std::span<const float> other, uint64_t first_element);

// The table's answer of those of its shards, one after the other.
VectorAnswer JoinAnswers(const VectorQuery& query, std::span<const VectorAnswer> shards);

}  // namespace covey
