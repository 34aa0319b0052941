// SPDX-License-Identifier: Apache-2.0
#include "common/table/row_type.h"

namespace covey {

std::optional<WireFormat> RowTypeFromProto(proto::DataType type) {
  switch (type) {
    case proto::FLOAT32:
      return WireFormat::kFloat32;
    case proto::BFLOAT16:
      return WireFormat::kBfloat16;
    case proto::FLOAT16:
      return WireFormat::kFloat16;
    default:
      return std::nullopt;
  }
}

}  // namespace covey
