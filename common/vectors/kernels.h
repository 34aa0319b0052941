// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace covey {

// The arithmetic of server functions over spans of floats, each one pass over memory.
//
// Pure and thread-safe; any alignment. Spans of one call have the same length. An output is either
// the very same memory as an input or disjoint from it.
//
// Determinism: element-wise kernels round as IEEE 754 single precision after each operation. Sums
// are in double, in kVectorLanes sums by index modulo kVectorLanes that are added in growing order
// at the end; a product of two floats is exact in double. So the bits depend on no vector width and
// no processor.
//
// Cost, in bytes moved per element: Dot 8; the other reductions 4; AddScaled in place 12, Scaled in
// place 8, Fill 4; 4 more where an output is no input, because a cache line is read before it is
// written. A core that moves 10 GB/s should do 1.25 billion elements of Dot per second, and 0.83 of
// AddScaled. kernels_bench.cc measures it, and BENCHMARKS.md has figures.
inline constexpr size_t kVectorLanes = 16;

double Dot(std::span<const float> a, std::span<const float> b);
double Sum(std::span<const float> x);
double SumOfMagnitudes(std::span<const float> x);
uint64_t CountNonZero(std::span<const float> x);
// NaN does not count. Of nothing else: 0, infinity and minus infinity.
float LargestMagnitude(std::span<const float> x);
float Smallest(std::span<const float> x);
float Largest(std::span<const float> x);

// out = value; out = factor * in; out = in + factor * x.
void Fill(float value, std::span<float> out);
void Scaled(float factor, std::span<const float> in, std::span<float> out);
void AddScaled(float factor, std::span<const float> x, std::span<const float> in,
               std::span<float> out);

}  // namespace covey
