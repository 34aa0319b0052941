// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/adasum.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "common/vectors/kernels.h"

namespace covey::worker {
namespace {

// A vector that is this much shorter than its terms is what rounding of float32 has left of them.
constexpr double kRounding = 1e-6;
// Elements of all members that stay in a core's cache while all pairs are multiplied.
constexpr size_t kBlockElements = 2048;

// A linear combination of the gradients of members [begin, end).
struct Span {
  uint32_t begin = 0;
  uint32_t end = 0;
};

class Combination {
 public:
  Combination(std::span<const double> products, uint32_t members)
      : products_(products), members_(members), coefficients_(members, 1.0) {}

  // The two become one, of all members of both.
  void Join(const Span& a, const Span& b) {
    if (IsNothing(a) || IsNothing(b)) return;
    const double half = Product(a, b) / 2;
    const double of_a = 1 - half / Product(a, a);
    const double of_b = 1 - half / Product(b, b);
    for (uint32_t i = a.begin; i < a.end; ++i) coefficients_[i] *= of_a;
    for (uint32_t i = b.begin; i < b.end; ++i) coefficients_[i] *= of_b;
  }
  std::vector<double> Take() { return std::move(coefficients_); }

 private:
  double Between(uint32_t i, uint32_t j) const {
    const size_t low = std::min(i, j);
    const size_t high = std::max(i, j);
    return products_[low * members_ - low * (low + 1) / 2 + high];
  }
  double Product(const Span& a, const Span& b) const {
    double product = 0;
    for (uint32_t i = a.begin; i < a.end; ++i) {
      for (uint32_t j = b.begin; j < b.end; ++j) {
        product += coefficients_[i] * coefficients_[j] * Between(i, j);
      }
    }
    return product;
  }
  bool IsNothing(const Span& a) const {
    double terms = 0;
    for (uint32_t i = a.begin; i < a.end; ++i) {
      terms += std::abs(coefficients_[i]) * std::sqrt(Between(i, i));
    }
    return Product(a, a) <= kRounding * kRounding * terms * terms;
  }

  const std::span<const double> products_;
  const uint32_t members_;
  std::vector<double> coefficients_;
};

}  // namespace

std::vector<double> AdasumCoefficients(std::span<const double> products, uint32_t members) {
  COVEY_CHECK(products.size() == AdasumProducts(members));
  Combination combination(products, members);
  // Pairs of neighbors; the last one of an odd number goes on as it is.
  for (uint32_t width = 1; width < members; width *= 2) {
    for (uint32_t begin = 0; begin + width < members; begin += 2 * width) {
      const uint32_t middle = begin + width;
      combination.Join({begin, middle}, {middle, std::min(middle + width, members)});
    }
  }
  return combination.Take();
}

void AddProducts(std::span<const float> rows, uint32_t members, PartRange tensor,
                 std::span<double> products) {
  COVEY_CHECK(products.size() == AdasumProducts(members));
  const size_t columns = rows.size() / members;
  for (size_t done = 0; done < tensor.count; done += kBlockElements) {
    const size_t count = std::min(kBlockElements, tensor.count - done);
    const auto block = [&](uint32_t row) {
      return rows.subspan(row * columns + tensor.first + done, count);
    };
    double* product = products.data();
    for (uint32_t i = 0; i < members; ++i) {
      for (uint32_t j = i; j < members; ++j) *product++ += Dot(block(i), block(j));
    }
  }
}

void SumRows(std::span<const float> rows, std::span<const double> factors, PartRange tensor,
             std::span<float> sum) {
  COVEY_CHECK(sum.size() == tensor.count);
  const size_t columns = rows.size() / factors.size();
  for (size_t i = 0; i < factors.size(); ++i) {
    const auto row = rows.subspan(i * columns + tensor.first, tensor.count);
    const auto factor = static_cast<float>(factors[i]);
    if (i == 0) {
      Scaled(factor, row, sum);
    } else {
      AddScaled(factor, row, sum, sum);
    }
  }
}

}  // namespace covey::worker
