// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "proto/table.pb.h"

namespace covey {

// A small regression problem whose training exposes every rounding. The processes of a cluster and
// the reference in one process both compute it. Pure.

inline constexpr uint64_t kBitEqualitySteps = 12;

// Three tables: with many shards, with two, and with few elements; `bsp`, momentum, and a rate that
// changes with the samples.
std::vector<proto::TableSpec> BitEqualityTables();

// Examples of a member in a step, counted from 1; they differ between members, and may be 0.
uint64_t BitEqualitySamples(uint32_t member, uint64_t step);

// The member's mean gradient at `values`.
void BitEqualityGradient(uint32_t member, uint64_t step, std::span<const float> values,
                         std::span<float> gradient);

// "weights NAME 1a2b3c4d": two tables print the same line when they are equal bit for bit (or one
// time in 4 billion).
std::string BitEqualityLine(const std::string& table, std::span<const float> values);

}  // namespace covey
