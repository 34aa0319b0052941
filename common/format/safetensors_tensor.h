// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/wire_format.h"

namespace covey {

// The types of elements that safetensors 0.8 knows. Values: places in a table of the source file.
enum class SafetensorsType : uint8_t {
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBf16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

// "F32". All functions are pure.
absl::string_view SafetensorsTypeName(SafetensorsType type);
// Nothing for an unknown name.
std::optional<SafetensorsType> SafetensorsTypeNamed(absl::string_view name);
// Bits per element: 4 to 64.
uint64_t SafetensorsTypeBits(SafetensorsType type);

// The type that holds elements of this wire format; nothing for int8, whose blocks have scales.
std::optional<SafetensorsType> SafetensorsTypeOf(WireFormat format);
// The reverse: the wire format in which Covey reads elements of this type; nothing for others.
std::optional<WireFormat> WireFormatOf(SafetensorsType type);

// A tensor of a safetensors file.
struct SafetensorsTensor {
  std::string name;
  SafetensorsType type = SafetensorsType::kF32;
  // Slowest extent first; empty for a scalar.
  std::vector<uint64_t> shape;

  // The size of its data. INVALID_ARGUMENT: no whole number of bytes, or beyond 2^64 bits when
  // extents of 0 are left out; the message continues after the tensor's name.
  absl::StatusOr<uint64_t> Bytes() const;

  friend bool operator==(const SafetensorsTensor&, const SafetensorsTensor&) = default;
};

// Text for readers of the file, by name.
using SafetensorsNotes = std::vector<std::pair<std::string, std::string>>;

}  // namespace covey
