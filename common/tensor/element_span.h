// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/base/check.h"

namespace covey {

// What a tensor consists of; numbers as in proto/tensor.proto. kByte: of anything, without
// arithmetic.
enum class ElementType : uint8_t { kFloat32 = 0, kFloat64 = 1, kInt32 = 2, kInt64 = 3, kByte = 4 };
inline constexpr ElementType kElementTypes[] = {ElementType::kFloat32, ElementType::kFloat64,
                                                ElementType::kInt32, ElementType::kInt64,
                                                ElementType::kByte};

// "float32", "float64", "int32", "int64", "byte".
constexpr const char* ElementTypeName(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "float32";
    case ElementType::kFloat64:
      return "float64";
    case ElementType::kInt32:
      return "int32";
    case ElementType::kInt64:
      return "int64";
    case ElementType::kByte:
      return "byte";
  }
  return "unknown";
}

constexpr size_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
    case ElementType::kInt32:
      return 4;
    case ElementType::kFloat64:
    case ElementType::kInt64:
      return 8;
    case ElementType::kByte:
      return 1;
  }
  return 1;
}
inline constexpr size_t kElementBytesMax = 8;

template <typename T>
inline constexpr ElementType kElementTypeOf = ElementType::kByte;
template <>
inline constexpr ElementType kElementTypeOf<float> = ElementType::kFloat32;
template <>
inline constexpr ElementType kElementTypeOf<double> = ElementType::kFloat64;
template <>
inline constexpr ElementType kElementTypeOf<int32_t> = ElementType::kInt32;
template <>
inline constexpr ElementType kElementTypeOf<int64_t> = ElementType::kInt64;

// Elements of one type in the memory of somebody else, which outlives the span: a std::span whose
// type is known at run time. Spans and vectors of float, double, int32_t, int64_t and uint8_t
// become one by themselves.
class ElementSpan {
 public:
  ElementSpan() = default;
  // `data` is aligned for the type.
  ElementSpan(ElementType type, void* data, size_t size) : type_(type), data_(data), size_(size) {}
  template <typename T>
  ElementSpan(std::span<T> elements)
      : ElementSpan(kElementTypeOf<T>, elements.data(), elements.size()) {
    static_assert(sizeof(T) == ElementBytes(kElementTypeOf<T>));
  }
  template <typename T>
  ElementSpan(std::vector<T>& elements) : ElementSpan(std::span<T>(elements)) {}

  ElementType type() const { return type_; }
  void* data() const { return data_; }
  // Elements.
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  std::span<uint8_t> bytes() const {
    return {static_cast<uint8_t*>(data_), size_ * ElementBytes(type_)};
  }
  // Precondition: T is the type.
  template <typename T>
  std::span<T> As() const {
    COVEY_CHECK(type_ == kElementTypeOf<T>);
    return {static_cast<T*>(data_), size_};
  }
  // Precondition: [first, first + count) is within it.
  ElementSpan subspan(size_t first, size_t count) const {
    return {type_, bytes().data() + first * ElementBytes(type_), count};
  }

 private:
  ElementType type_ = ElementType::kFloat32;
  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace covey
