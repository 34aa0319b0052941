// SPDX-License-Identifier: Apache-2.0
#include "common/format/safetensors_tensor.h"

#include <cstddef>
#include <iterator>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"

namespace covey {
namespace {

struct TypeRow {
  SafetensorsType type;
  absl::string_view name;
  uint64_t bits;
};

using enum SafetensorsType;

constexpr TypeRow kTypes[] = {
    {kBool, "BOOL", 8},
    {kF4, "F4", 4},
    {kF6E2M3, "F6_E2M3", 6},
    {kF6E3M2, "F6_E3M2", 6},
    {kU8, "U8", 8},
    {kI8, "I8", 8},
    {kF8E5M2, "F8_E5M2", 8},
    {kF8E4M3, "F8_E4M3", 8},
    {kF8E8M0, "F8_E8M0", 8},
    {kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
    {kF8E5M2Fnuz, "F8_E5M2FNUZ", 8},
    {kI16, "I16", 16},
    {kU16, "U16", 16},
    {kF16, "F16", 16},
    {kBf16, "BF16", 16},
    {kI32, "I32", 32},
    {kU32, "U32", 32},
    {kF32, "F32", 32},
    {kC64, "C64", 64},
    {kF64, "F64", 64},
    {kI64, "I64", 64},
    {kU64, "U64", 64},
};

constexpr bool InOrder() {
  for (size_t i = 0; i < std::size(kTypes); ++i) {
    if (kTypes[i].type != static_cast<SafetensorsType>(i)) return false;
  }
  return true;
}
static_assert(InOrder());

const TypeRow& RowOf(SafetensorsType type) {
  const auto place = static_cast<size_t>(type);
  COVEY_CHECK(place < std::size(kTypes));
  return kTypes[place];
}

}  // namespace

absl::string_view SafetensorsTypeName(SafetensorsType type) { return RowOf(type).name; }

uint64_t SafetensorsTypeBits(SafetensorsType type) { return RowOf(type).bits; }

std::optional<SafetensorsType> SafetensorsTypeNamed(absl::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

std::optional<SafetensorsType> SafetensorsTypeOf(WireFormat format) {
  switch (format) {
    case WireFormat::kFloat32:
      return kF32;
    case WireFormat::kFloat16:
      return kF16;
    case WireFormat::kBfloat16:
      return kBf16;
    case WireFormat::kInt8Block:
    case WireFormat::kFloat16Block:
    case WireFormat::kFloat8Block:
    case WireFormat::kTopBlock:
      break;
  }
  return std::nullopt;
}

std::optional<WireFormat> WireFormatOf(SafetensorsType type) {
  for (const WireFormat format : kWireFormats) {
    if (SafetensorsTypeOf(format) == type) return format;
  }
  return std::nullopt;
}

absl::StatusOr<uint64_t> SafetensorsTensor::Bytes() const {
  uint64_t bits = SafetensorsTypeBits(type);
  bool is_empty = false;
  for (const uint64_t extent : shape) {
    if (extent == 0) {
      is_empty = true;
    } else if (__builtin_mul_overflow(bits, extent, &bits)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the shape [", absl::StrJoin(shape, ", "), "] has more than 2^64 bits"));
    }
  }
  if (is_empty) return 0;
  if (bits % 8 != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(bits, " bits of type ", SafetensorsTypeName(type), " are no whole bytes"));
  }
  return bits / 8;
}

}  // namespace covey
