// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace covey::worker {

// Divides a group's batch among its members in proportion to `shares`, one number per member, by
// largest remainders (Hamilton's method), ties to the lower rank. The result adds up to `batch`
// exactly; each member is less than one sample off its exact share. Shares that are all 0, or
// empty, mean an even division.
//
// Pure. Precondition: members >= 1, and `shares` is empty or has `members` entries.
std::vector<uint64_t> DivideSamples(uint64_t batch, std::span<const uint32_t> shares,
                                    uint32_t members);

// The member's fraction of the whole, between 0 and 1.
double ShareOf(std::span<const uint32_t> shares, uint32_t members, uint32_t rank);

}  // namespace covey::worker
