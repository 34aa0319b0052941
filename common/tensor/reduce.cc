// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/reduce.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "common/base/check.h"

// Compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/tensor/reduce.cc"
#include "hwy/foreach_target.h"
// Chooses the widest that the processor has.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace covey {
namespace {
namespace HWY_NAMESPACE {

// Unsigned, so that integers wrap around.
template <typename T>
struct ArithmeticOf {
  using Type = std::make_unsigned_t<T>;
};
template <>
struct ArithmeticOf<float> {
  using Type = float;
};
template <>
struct ArithmeticOf<double> {
  using Type = double;
};

template <typename T>
struct Sum {
  static T Of(T a, T b) {
    using Arithmetic = typename ArithmeticOf<T>::Type;
    return static_cast<T>(static_cast<Arithmetic>(b) + static_cast<Arithmetic>(a));
  }
};

template <typename T>
struct Product {
  static T Of(T a, T b) {
    using Arithmetic = typename ArithmeticOf<T>::Type;
    return static_cast<T>(static_cast<Arithmetic>(b) * static_cast<Arithmetic>(a));
  }
};

// Of two that are equal, -0 and +0 alone differ in their bits.
template <typename T>
struct Smaller {
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return a < b ? a : b;
    } else {
      using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
      const T equal = std::bit_cast<T>(std::bit_cast<Bits>(a) | std::bit_cast<Bits>(b));
      return a < b ? a : b < a ? b : a == b ? equal : a + b;
    }
  }
};

template <typename T>
struct Larger {
  static T Of(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return a < b ? b : a;
    } else {
      using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
      const T equal = std::bit_cast<T>(std::bit_cast<Bits>(a) & std::bit_cast<Bits>(b));
      return a < b ? b : b < a ? a : a == b ? equal : a + b;
    }
  }
};

template <template <typename> class Op, typename T>
void Reduce(T* __restrict into, const T* __restrict x, size_t count) {
  for (size_t i = 0; i < count; ++i) into[i] = Op<T>::Of(into[i], x[i]);
}

template <typename T>
void ReduceBy(ReduceOp op, void* into, const void* x, size_t count) {
  T* const sum = static_cast<T*>(into);
  const T* const values = static_cast<const T*>(x);
  switch (op) {
    case ReduceOp::kSum:
      return Reduce<Sum>(sum, values, count);
    case ReduceOp::kProduct:
      return Reduce<Product>(sum, values, count);
    case ReduceOp::kMin:
      return Reduce<Smaller>(sum, values, count);
    case ReduceOp::kMax:
      return Reduce<Larger>(sum, values, count);
  }
}

void ReduceArrays(ElementType type, ReduceOp op, void* into, const void* x, size_t count) {
  switch (type) {
    case ElementType::kFloat32:
      return ReduceBy<float>(op, into, x, count);
    case ElementType::kFloat64:
      return ReduceBy<double>(op, into, x, count);
    case ElementType::kInt32:
      return ReduceBy<int32_t>(op, into, x, count);
    case ElementType::kInt64:
      return ReduceBy<int64_t>(op, into, x, count);
    case ElementType::kByte:
      return;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace covey
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace covey {
namespace {

HWY_EXPORT(ReduceArrays);

// Elements that do not begin at a multiple of their size are copied so many bytes at a time.
constexpr size_t kChunkBytes = 1024;

}  // namespace

void ReduceInto(ReduceOp op, ElementSpan into, std::span<const uint8_t> x) {
  COVEY_CHECK(into.type() != ElementType::kByte && x.size() == into.bytes().size());
  const size_t element = ElementBytes(into.type());
  if (reinterpret_cast<uintptr_t>(x.data()) % element == 0) {
    HWY_DYNAMIC_DISPATCH(ReduceArrays)(into.type(), op, into.data(), x.data(), into.size());
    return;
  }
  for (size_t byte = 0; byte < x.size(); byte += kChunkBytes) {
    alignas(64) uint8_t aligned[kChunkBytes];
    const size_t bytes = std::min(kChunkBytes, x.size() - byte);
    std::memcpy(aligned, x.data() + byte, bytes);
    HWY_DYNAMIC_DISPATCH(ReduceArrays)
    (into.type(), op, into.bytes().data() + byte, aligned, bytes / element);
  }
}

}  // namespace covey
#endif  // HWY_ONCE
