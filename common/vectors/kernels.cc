// SPDX-License-Identifier: Apache-2.0
#include "common/vectors/kernels.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

// Compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/vectors/kernels.cc"
#include "hwy/foreach_target.h"
// Chooses the widest that the processor has.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace covey {
namespace {
namespace HWY_NAMESPACE {

// One running result for each lane, see the header. `fold` changes the lane's by element i.
template <typename Lane, typename Fold>
inline void FoldLanes(size_t count, Lane* lanes, const Fold& fold) {
  const size_t whole = count / kVectorLanes * kVectorLanes;
  for (size_t first = 0; first < whole; first += kVectorLanes) {
    for (size_t lane = 0; lane < kVectorLanes; ++lane) fold(lanes[lane], first + lane);
  }
  for (size_t i = whole; i < count; ++i) fold(lanes[i - whole], i);
}

template <typename Term>
inline double SumLanes(size_t count, const Term& term) {
  double lanes[kVectorLanes] = {};
  FoldLanes(count, lanes, [&](double& sum, size_t i) { sum += term(i); });
  double total = 0;
  for (const double sum : lanes) total += sum;
  return total;
}

// `takes` says whether an element replaces the result so far; NaN never does.
template <typename Element, typename Takes>
inline float Select(size_t count, float begin, const Element& element, const Takes& takes) {
  float lanes[kVectorLanes];
  for (float& lane : lanes) lane = begin;
  FoldLanes(count, lanes, [&](float& best, size_t i) {
    const float x = element(i);
    best = takes(x, best) ? x : best;
  });
  float best = begin;
  for (const float lane : lanes) best = takes(lane, best) ? lane : best;
  return best;
}

double DotOf(const float* a, const float* b, size_t count) {
  return SumLanes(count,
                  [=](size_t i) { return static_cast<double>(a[i]) * static_cast<double>(b[i]); });
}

double SumOf(const float* x, size_t count) {
  return SumLanes(count, [=](size_t i) { return static_cast<double>(x[i]); });
}

double MagnitudesOf(const float* x, size_t count) {
  return SumLanes(count, [=](size_t i) { return static_cast<double>(std::fabs(x[i])); });
}

uint64_t NonZeroOf(const float* x, size_t count) {
  uint64_t total = 0;
  for (size_t i = 0; i < count; ++i) total += x[i] != 0 ? 1 : 0;
  return total;
}

float LargestMagnitudeOf(const float* x, size_t count) {
  return Select(
      count, 0, [=](size_t i) { return std::fabs(x[i]); },
      [](float next, float best) { return next > best; });
}

float SmallestOf(const float* x, size_t count) {
  return Select(
      count, std::numeric_limits<float>::infinity(), [=](size_t i) { return x[i]; },
      [](float next, float best) { return next < best; });
}

float LargestOf(const float* x, size_t count) {
  return Select(
      count, -std::numeric_limits<float>::infinity(), [=](size_t i) { return x[i]; },
      [](float next, float best) { return next > best; });
}

void FillAll(float value, float* out, size_t count) {
  for (size_t i = 0; i < count; ++i) out[i] = value;
}

void ScaleAll(float factor, const float* in, float* out, size_t count) {
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) out[i] = factor * in[i];
}

void AddAll(float factor, const float* x, const float* in, float* out, size_t count) {
#pragma GCC ivdep
  for (size_t i = 0; i < count; ++i) out[i] = in[i] + factor * x[i];
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace covey
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace covey {
namespace {

HWY_EXPORT(DotOf);
HWY_EXPORT(SumOf);
HWY_EXPORT(MagnitudesOf);
HWY_EXPORT(NonZeroOf);
HWY_EXPORT(LargestMagnitudeOf);
HWY_EXPORT(SmallestOf);
HWY_EXPORT(LargestOf);
HWY_EXPORT(FillAll);
HWY_EXPORT(ScaleAll);
HWY_EXPORT(AddAll);

}  // namespace

double Dot(std::span<const float> a, std::span<const float> b) {
  return HWY_DYNAMIC_DISPATCH(DotOf)(a.data(), b.data(), a.size());
}

double Sum(std::span<const float> x) { return HWY_DYNAMIC_DISPATCH(SumOf)(x.data(), x.size()); }

double SumOfMagnitudes(std::span<const float> x) {
  return HWY_DYNAMIC_DISPATCH(MagnitudesOf)(x.data(), x.size());
}

uint64_t CountNonZero(std::span<const float> x) {
  return HWY_DYNAMIC_DISPATCH(NonZeroOf)(x.data(), x.size());
}

float LargestMagnitude(std::span<const float> x) {
  return HWY_DYNAMIC_DISPATCH(LargestMagnitudeOf)(x.data(), x.size());
}

float Smallest(std::span<const float> x) {
  return HWY_DYNAMIC_DISPATCH(SmallestOf)(x.data(), x.size());
}

float Largest(std::span<const float> x) {
  return HWY_DYNAMIC_DISPATCH(LargestOf)(x.data(), x.size());
}

void Fill(float value, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(FillAll)(value, out.data(), out.size());
}

void Scaled(float factor, std::span<const float> in, std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(ScaleAll)(factor, in.data(), out.data(), out.size());
}

void AddScaled(float factor, std::span<const float> x, std::span<const float> in,
               std::span<float> out) {
  HWY_DYNAMIC_DISPATCH(AddAll)(factor, x.data(), in.data(), out.data(), out.size());
}

}  // namespace covey
#endif  // HWY_ONCE
