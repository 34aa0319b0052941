// SPDX-License-Identifier: Apache-2.0
#include "common/format/event_record.h"

#include <bit>
#include <concepts>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"

namespace covey {
namespace {

// The version that TensorBoard knows since 2015.
constexpr absl::string_view kFileVersion = "brain.Event:2";

// Values beyond float become infinite.
float FloatOf(double value) {
  constexpr double kMax = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (value > kMax) return kInfinity;
  return value < -kMax ? -kInfinity : static_cast<float>(value);
}

// Wire types of protobuf.
enum class WireType : uint8_t { kVarint = 0, k64Bits = 1, kBytes = 2, k32Bits = 5 };

template <std::unsigned_integral Number>
std::string LittleEndian(Number number) {
  std::string bytes;
  for (size_t byte = 0; byte < sizeof number; ++byte) {
    bytes.push_back(static_cast<char>(number >> (8 * byte)));
  }
  return bytes;
}

std::string Varint(uint64_t number) {
  std::string bytes;
  for (; number >= 0x80; number >>= 7) bytes.push_back(static_cast<char>(number | 0x80));
  bytes.push_back(static_cast<char>(number));
  return bytes;
}

std::string Key(uint32_t field, WireType type) {
  return Varint(field << 3 | static_cast<uint32_t>(type));
}

std::string BytesField(uint32_t field, absl::string_view bytes) {
  return absl::StrCat(Key(field, WireType::kBytes), Varint(bytes.size()), bytes);
}

std::string WallTimeField(absl::Time wall_time) {
  // Exact, unlike absl::ToDoubleSeconds.
  const double seconds = static_cast<double>(absl::ToUnixMicros(wall_time)) / 1e6;
  return absl::StrCat(Key(1, WireType::k64Bits), LittleEndian(std::bit_cast<uint64_t>(seconds)));
}

std::string MaskedCrc(absl::string_view bytes) {
  const uint32_t crc = Crc32c({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  return LittleEndian(std::rotr(crc, 15) + 0xa282ead8u);
}

std::string Record(absl::string_view event) {
  const std::string length = LittleEndian(uint64_t{event.size()});
  return absl::StrCat(length, MaskedCrc(length), event, MaskedCrc(event));
}

}  // namespace

std::string EventFileStart(absl::Time wall_time) {
  return Record(absl::StrCat(WallTimeField(wall_time), BytesField(3, kFileVersion)));
}

std::string ScalarsRecord(absl::Time wall_time, uint64_t step,
                          std::span<const EventScalar> scalars) {
  COVEY_CHECK(!scalars.empty());
  std::string summary;
  for (const EventScalar& scalar : scalars) {
    const auto bits = std::bit_cast<uint32_t>(FloatOf(scalar.value));
    absl::StrAppend(&summary,
                    BytesField(1, absl::StrCat(BytesField(1, scalar.tag), Key(2, WireType::k32Bits),
                                               LittleEndian(bits))));
  }
  return Record(absl::StrCat(WallTimeField(wall_time), Key(2, WireType::kVarint), Varint(step),
                             BytesField(5, summary)));
}

}  // namespace covey
