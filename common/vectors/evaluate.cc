// SPDX-License-Identifier: Apache-2.0
#include "common/vectors/evaluate.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "common/base/check.h"
#include "common/vectors/kernels.h"

namespace covey {
namespace {

// Grows with the magnitude; NaN is the largest.
uint32_t MagnitudeRank(float x) { return std::bit_cast<uint32_t>(x) & 0x7fffffff; }

// In the order of VectorAnswer::top.
bool ComesFirst(const TopElement& a, const TopElement& b) {
  const uint32_t rank_of_a = MagnitudeRank(a.value);
  const uint32_t rank_of_b = MagnitudeRank(b.value);
  return rank_of_a != rank_of_b ? rank_of_a > rank_of_b : a.place < b.place;
}

std::vector<TopElement> TopOf(std::span<const float> vector, uint64_t first_element, size_t count) {
  std::vector<TopElement> top;
  count = std::min(count, vector.size());
  if (count == 0) return top;
  top.reserve(count);
  // A heap whose front is the element that goes next. Places grow, so an equal one stays out.
  for (size_t i = 0; i < vector.size(); ++i) {
    const TopElement next = {.place = first_element + i, .value = vector[i]};
    if (top.size() == count) {
      if (MagnitudeRank(next.value) <= MagnitudeRank(top.front().value)) continue;
      std::pop_heap(top.begin(), top.end(), ComesFirst);
      top.pop_back();
    }
    top.push_back(next);
    std::push_heap(top.begin(), top.end(), ComesFirst);
  }
  std::sort_heap(top.begin(), top.end(), ComesFirst);
  return top;
}

double SumOfValues(std::span<const VectorAnswer> shards) {
  double sum = 0;
  for (const VectorAnswer& shard : shards) sum += shard.value;
  return sum;
}

}  // namespace

void ApplyFunction(const VectorFunction& function, std::span<const float> source,
                   std::span<const float> in, std::span<float> out) {
  COVEY_CHECK(in.size() == out.size() && (!function.has_source() || source.size() == out.size()));
  const auto scalar = static_cast<float>(function.scalar);
  switch (function.kind) {
    case VectorFunction::Kind::kSet:
      return Fill(scalar, out);
    case VectorFunction::Kind::kScale:
      return Scaled(scalar, in, out);
    case VectorFunction::Kind::kCopy:
      if (out.data() != source.data()) std::copy(source.begin(), source.end(), out.begin());
      return;
    case VectorFunction::Kind::kAxpy:
      return AddScaled(scalar, source, in, out);
  }
}

VectorAnswer AnswerOfShard(const VectorQuery& query, std::span<const float> vector,
                           std::span<const float> other, uint64_t first_element) {
  switch (query.kind) {
    case VectorQuery::Kind::kDot:
      COVEY_CHECK(vector.size() == other.size());
      return {.value = Dot(vector, other)};
    case VectorQuery::Kind::kNorm1:
      return {.value = SumOfMagnitudes(vector)};
    case VectorQuery::Kind::kNorm2:
      return {.value = Dot(vector, vector)};
    case VectorQuery::Kind::kNormMax:
      return {.value = LargestMagnitude(vector)};
    case VectorQuery::Kind::kSum:
      return {.value = Sum(vector)};
    case VectorQuery::Kind::kMin:
      return {.value = Smallest(vector)};
    case VectorQuery::Kind::kMax:
      return {.value = Largest(vector)};
    case VectorQuery::Kind::kNonZero:
      return {.value = static_cast<double>(CountNonZero(vector))};
    case VectorQuery::Kind::kTop:
      return {.top = TopOf(vector, first_element, query.count)};
  }
  return {};
}

VectorAnswer JoinAnswers(const VectorQuery& query, std::span<const VectorAnswer> shards) {
  VectorAnswer joined;
  switch (query.kind) {
    case VectorQuery::Kind::kDot:
    case VectorQuery::Kind::kNorm1:
    case VectorQuery::Kind::kSum:
    case VectorQuery::Kind::kNonZero:
      return {.value = SumOfValues(shards)};
    case VectorQuery::Kind::kNorm2:
      return {.value = std::sqrt(SumOfValues(shards))};
    case VectorQuery::Kind::kNormMax:
      for (const VectorAnswer& shard : shards) joined.value = std::max(joined.value, shard.value);
      return joined;
    case VectorQuery::Kind::kMin:
      joined.value = std::numeric_limits<double>::infinity();
      for (const VectorAnswer& shard : shards) joined.value = std::min(joined.value, shard.value);
      return joined;
    case VectorQuery::Kind::kMax:
      joined.value = -std::numeric_limits<double>::infinity();
      for (const VectorAnswer& shard : shards) joined.value = std::max(joined.value, shard.value);
      return joined;
    case VectorQuery::Kind::kTop:
      for (const VectorAnswer& shard : shards) {
        joined.top.insert(joined.top.end(), shard.top.begin(), shard.top.end());
      }
      std::sort(joined.top.begin(), joined.top.end(), ComesFirst);
      if (joined.top.size() > query.count) joined.top.resize(query.count);
      return joined;
  }
  return joined;
}

}  // namespace covey
