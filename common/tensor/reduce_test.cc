// SPDX-License-Identifier: Apache-2.0

// Every type and operation against a loop that handles one element at a time, bit for bit.

#include "common/tensor/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/kernels.h"
#include "common/tensor/testing/each_target.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

// Around the widths of vectors, and beyond what is copied at a time.
constexpr size_t kCounts[] = {0, 1, 2, 3, 7, 8, 9, 31, 33, 127, 129, 255, 257, 1000};

template <typename T>
std::vector<T> RandomValues(size_t count, Random& random) {
  std::vector<T> values(count);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      using Limits = std::numeric_limits<T>;
      const T special[] = {0,
                           -T{0},
                           Limits::denorm_min(),
                           Limits::max(),
                           -Limits::max(),
                           Limits::quiet_NaN(),
                           Limits::infinity(),
                           -Limits::infinity()};
      value = random.Chance(0.4) ? special[random.Below(std::size(special))]
                                 : static_cast<T>(random.Uniform() * 2 - 1);
    } else {
      value = static_cast<T>(random.Next());
    }
  }
  return values;
}

template <typename T>
T Expected(ReduceOp op, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (op == ReduceOp::kSum) return a + b;
    if (op == ReduceOp::kProduct) return a * b;
    if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
    const bool a_is_smaller = a == b ? std::signbit(a) : a < b;
    return (op == ReduceOp::kMin) == a_is_smaller ? a : b;
  } else {
    using Unsigned = std::make_unsigned_t<T>;
    const auto x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
    if (op == ReduceOp::kSum) return static_cast<T>(x + y);
    if (op == ReduceOp::kProduct) return static_cast<T>(x * y);
    return op == ReduceOp::kMin ? std::min(a, b) : std::max(a, b);
  }
}

// The payload of a NaN is not promised.
template <typename T>
bool SameBits(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a) && std::isnan(b)) return true;
  }
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <typename T>
std::vector<T> Reduced(ReduceOp op, std::vector<T> into, const std::vector<T>& x,
                       size_t misaligned) {
  std::vector<uint8_t> bytes(misaligned + x.size() * sizeof(T));
  if (!x.empty()) std::memcpy(bytes.data() + misaligned, x.data(), x.size() * sizeof(T));
  ReduceInto(op, into, std::span(bytes).subspan(misaligned));
  return into;
}

template <typename T>
void CheckAll() {
  Random random(1);
  for (const ReduceOp op : kReduceOps) {
    for (const size_t count : kCounts) {
      const std::vector<T> a = RandomValues<T>(count, random), b = RandomValues<T>(count, random);
      for (const size_t misaligned : {0, 1, 4}) {
        const std::vector<T> ab = Reduced(op, a, b, misaligned), ba = Reduced(op, b, a, misaligned);
        for (size_t i = 0; i < count; ++i) {
          ASSERT_TRUE(SameBits(ab[i], Expected(op, a[i], b[i])))
              << ElementTypeName(kElementTypeOf<T>) << " operation " << static_cast<int>(op) << ": "
              << a[i] << " and " << b[i] << " give " << ab[i];
          ASSERT_TRUE(SameBits(ab[i], ba[i])) << "in either order";
        }
      }
    }
  }
}

using ReduceTest = EachTargetTest;
COVEY_FOR_EACH_TARGET(ReduceTest);

TEST_P(ReduceTest, CombinesEachElement) {
  CheckAll<float>();
  CheckAll<double>();
  CheckAll<int32_t>();
  CheckAll<int64_t>();
}

TEST_P(ReduceTest, ASumOfFloatsHasTheBitsOfAddInto) {
  Random random(2);
  const std::vector<float> a = RandomValues<float>(1000, random);
  const std::vector<float> b = RandomValues<float>(1000, random);
  std::vector<float> expected = a;
  AddInto(expected, b);
  const std::vector<float> sum = Reduced(ReduceOp::kSum, a, b, 0);
  for (size_t i = 0; i < sum.size(); ++i) ASSERT_TRUE(SameBits(sum[i], expected[i]));
}

}  // namespace
}  // namespace covey
