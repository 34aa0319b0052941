// SPDX-License-Identifier: Apache-2.0

// Factors against a loop that handles one element at a time, compared bit for bit.

#include "common/tensor/outer_product.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/codec.h"
#include "common/tensor/testing/each_target.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

std::vector<float> RandomValues(size_t count, Random& random) {
  std::vector<float> values(count);
  for (float& value : values) value = static_cast<float>(random.Uniform() * 2 - 1);
  return values;
}

struct Matrix {
  uint64_t rows;
  uint64_t columns;
  size_t terms;
};

std::vector<float> Expected(const Matrix& matrix, std::span<const float> left,
                            std::span<const float> right) {
  std::vector<float> gradient(matrix.rows * matrix.columns, 0.0f);
  for (size_t i = 0; i < gradient.size(); ++i) {
    for (size_t t = 0; t < matrix.terms; ++t) {
      const float product = left[t * matrix.rows + i / matrix.columns] *
                            right[t * matrix.columns + i % matrix.columns];
      gradient[i] = gradient[i] + product;
    }
  }
  return gradient;
}

constexpr Matrix kMatrices[] = {{1, 1, 1},   {3, 5, 1},   {7, 3, 4},   {5, 31, 7},
                                {1, 700, 3}, {700, 1, 5}, {4, 1300, 9}};

using OuterProductTest = EachTargetTest;
COVEY_FOR_EACH_TARGET(OuterProductTest);

TEST_P(OuterProductTest, AnyRangeHasTheBitsOfTheWholeMatrix) {
  Random random(1);
  for (const Matrix& matrix : kMatrices) {
    const std::vector<float> left = RandomValues(matrix.terms * matrix.rows, random);
    const std::vector<float> right = RandomValues(matrix.terms * matrix.columns, random);
    const std::vector<float> expected = Expected(matrix, left, right);
    const Factors factors{.terms = matrix.terms, .left = left, .right = right};
    for (int i = 0; i < 20; ++i) {
      const uint64_t first = i == 0 ? 0 : random.Below(expected.size());
      const uint64_t count = i == 0 ? expected.size() : 1 + random.Below(expected.size() - first);
      SCOPED_TRACE(testing::Message() << matrix.rows << " x " << matrix.columns << ": " << count
                                      << " elements from " << first);
      const MatrixRange range{.first_element = first, .elements = count, .columns = matrix.columns};
      const auto wanted = std::span(expected).subspan(first, count);
      std::vector<float> elements(count, NAN);
      SumOuterProducts(range, factors, elements);
      EXPECT_TRUE(std::equal(elements.begin(), elements.end(), wanted.begin()));

      // The same of what travels.
      std::vector<uint8_t> bytes(FactorBytes(WireFormat::kFloat32, range, matrix.terms));
      EXPECT_EQ(bytes.size(), 4 * matrix.terms * (range.rows() + matrix.columns));
      EncodeFactors(WireFormat::kFloat32, range, factors, bytes);
      std::vector<float> memory(bytes.size() / 4);
      const Factors decoded =
          DecodeFactors(WireFormat::kFloat32, range, matrix.terms, bytes, memory);
      std::fill(elements.begin(), elements.end(), NAN);
      SumOuterProducts(range, decoded, elements);
      EXPECT_TRUE(std::equal(elements.begin(), elements.end(), wanted.begin()));
    }
  }
}

TEST(OuterProduct, ATermIsEncodedByItself) {
  // A term of large factors would take the precision of one of small factors in its block.
  const std::vector<float> left = {1000, 2000, 0.001f, 0.002f};
  const std::vector<float> right = {500, 100, 300, 0.0005f, 0.0001f, 0.0003f};
  const MatrixRange range{.first_element = 0, .elements = 6, .columns = 3};
  for (const WireFormat format : kWireFormats) {
    std::vector<uint8_t> bytes(FactorBytes(format, range, 2));
    EncodeFactors(format, range, {.terms = 2, .left = left, .right = right}, bytes);
    std::vector<float> memory(10);
    const Factors factors = DecodeFactors(format, range, 2, bytes, memory);
    if (format == WireFormat::kTopBlock) continue;  // It keeps one factor of each.
    // float8 has three bits of fraction.
    const float part = format == WireFormat::kFloat8Block ? 1 / 16.0f : 1 / 40.0f;
    for (size_t i = 0; i < left.size(); ++i) {
      EXPECT_NEAR(factors.left[i], left[i], std::abs(left[i]) * part) << WireFormatName(format);
    }
    for (size_t i = 0; i < right.size(); ++i) {
      EXPECT_NEAR(factors.right[i], right[i], std::abs(right[i]) * part) << WireFormatName(format);
    }
  }
}

TEST(OuterProduct, FactorsAreSmallerBelowTheBreakEven) {
  // 40 * 60 / (40 + 60) = 24.
  const MatrixRange whole{.first_element = 0, .elements = 2400, .columns = 60};
  EXPECT_TRUE(AreFactorsSmaller(WireFormat::kFloat32, whole, 23));
  EXPECT_FALSE(AreFactorsSmaller(WireFormat::kFloat32, whole, 24));
  EXPECT_TRUE(AreFactorsSmaller(WireFormat::kFloat16, whole, 23));
  EXPECT_FALSE(AreFactorsSmaller(WireFormat::kFloat16, whole, 24));
  // A shard of ten rows, from the middle of one, is sent all of `right`.
  const MatrixRange part{.first_element = 90, .elements = 600, .columns = 60};
  EXPECT_EQ(part.rows(), 11u);
  EXPECT_TRUE(AreFactorsSmaller(WireFormat::kFloat32, part, 8));
  EXPECT_FALSE(AreFactorsSmaller(WireFormat::kFloat32, part, 9));
  EXPECT_FALSE(AreFactorsSmaller(WireFormat::kFloat32, whole, ~size_t{0}));
}

}  // namespace
}  // namespace covey
