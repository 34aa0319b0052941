// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace covey::worker {

// How a group divides a batch among its members: in proportion to `shares`, one number per member,
// by largest remainders (Hamilton's method), ties to the lower rank. Adds up to `batch` exactly; no
// member is off its exact share by one sample or more. Shares of which all are 0, or none is
// given, mean evenly.
//
// Pure. Precondition: members >= 1, and `shares` is empty or has `members` entries.
std::vector<uint64_t> DivideSamples(uint64_t batch, std::span<const uint32_t> shares,
                                    uint32_t members);

// Of the whole, between 0 and 1.
double ShareOf(std::span<const uint32_t> shares, uint32_t members, uint32_t rank);

}  // namespace covey::worker
