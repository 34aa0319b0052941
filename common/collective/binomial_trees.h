// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/collective/tree_links.h"

namespace covey {

// The trees of Algorithm::kTree and kHalvingDoubling: `rank`'s links in the tree whose root is
// `owner`, among `size` members. Used by Plan, which checks the ranks. Pure; O(log size).

// A binomial tree over the ranks, counted from the owner's.
TreeLinks BinomialLinks(uint32_t owner, uint32_t rank, uint32_t size);

// A binomial tree by exclusive or of ranks, over the first 2^k members. Each of the others has one
// of these as its partner, which acts for it.
TreeLinks HalvingDoublingLinks(uint32_t owner, uint32_t rank, uint32_t size);

}  // namespace covey
