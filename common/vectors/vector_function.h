// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"

namespace covey {

// What servers compute with the vectors of a table of vectors: a dense table whose optimizer is
// VECTORS. Vector 0 is the table's values. A push adds its gradient to vector 1: the learning rate
// times the sum, divided by the samples, as SGD would subtract it from the values. The others
// belong to the program. Values; the functions are pure.

// A change, element by element. Arithmetic is in float32, rounded after each operation, so that
// every replica gets the same bits, however the table is cut into shards.
struct VectorFunction {
  enum class Kind : uint8_t {
    kSet,    // target = scalar
    kScale,  // target *= scalar
    kCopy,   // target = source
    kAxpy,   // target += scalar * source
  };
  Kind kind = Kind::kSet;
  uint32_t target = 0;
  uint32_t source = 0;
  // Rounded to float32, in which it is finite.
  double scalar = 0;

  // Whether the kind reads `source`.
  bool has_source() const { return kind == Kind::kCopy || kind == Kind::kAxpy; }
  friend bool operator==(const VectorFunction&, const VectorFunction&) = default;
};

// A question, which is answered with a few numbers. Sums are in double and of a fixed order: the
// bits depend on the elements and on how the table is cut into shards, not on the server.
struct VectorQuery {
  enum class Kind : uint8_t {
    kDot,      // sum of vector * other
    kNorm1,    // sum of magnitudes
    kNorm2,    // Euclidean norm
    kNormMax,  // largest magnitude; NaN does not count
    kSum,
    kMin,  // NaN does not count; of nothing else: infinity, and for kMax minus infinity
    kMax,
    kNonZero,  // number of elements other than 0
    kTop,      // the `count` elements of largest magnitude; NaN is the largest
  };
  Kind kind = Kind::kDot;
  uint32_t vector = 0;
  uint32_t other = 0;
  uint32_t count = 0;

  friend bool operator==(const VectorQuery&, const VectorQuery&) = default;
};

struct TopElement {
  uint64_t place = 0;  // of the element in the table, in row-major order
  float value = 0;

  friend bool operator==(const TopElement&, const TopElement&) = default;
};

struct VectorAnswer {
  // 0 for kTop.
  double value = 0;
  // Of kTop: the largest magnitude first; of equal ones, that of the first place. Fewer where the
  // table has fewer elements.
  std::vector<TopElement> top = {};

  friend bool operator==(const VectorAnswer&, const VectorAnswer&) = default;
};

// Whether a table of so many vectors, its values among them, takes these in one request. 0: the
// table is not one of vectors. INVALID_ARGUMENT: names what is wrong, and the remedy.
absl::Status CheckFunctions(std::span<const VectorFunction> functions, size_t vectors);
absl::Status CheckQueries(std::span<const VectorQuery> queries, size_t vectors);

}  // namespace covey
