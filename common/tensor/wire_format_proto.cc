// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/wire_format_proto.h"

#include <iterator>
#include <utility>

#include "common/base/enum_map.h"

namespace covey {
namespace {

constexpr EnumMap kFormats({
    std::pair(WireFormat::kFloat32, proto::WIRE_FLOAT32),
    std::pair(WireFormat::kFloat16, proto::WIRE_FLOAT16),
    std::pair(WireFormat::kBfloat16, proto::WIRE_BFLOAT16),
    std::pair(WireFormat::kInt8Block, proto::WIRE_INT8_BLOCK),
    std::pair(WireFormat::kFloat16Block, proto::WIRE_FLOAT16_BLOCK),
    std::pair(WireFormat::kFloat8Block, proto::WIRE_FLOAT8_BLOCK),
    std::pair(WireFormat::kTopBlock, proto::WIRE_TOP_BLOCK),
});
static_assert(kFormats.IsOneToOne());
static_assert(kFormats.size() == std::size(kWireFormats));
static_assert(kFormats.size() == proto::WireFormat_ARRAYSIZE);

}  // namespace

proto::WireFormat ToProto(WireFormat format) { return kFormats.ToTheirs(format); }

std::optional<WireFormat> WireFormatFromProto(proto::WireFormat format) {
  return kFormats.ToOurs(format);
}

}  // namespace covey
