// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "common/tensor/wire_format.h"
#include "proto/tensor.pb.h"

namespace covey {

// WireFormat and its enum in proto/tensor.proto. Pure.

proto::WireFormat ToProto(WireFormat format);
// Nothing for a format that this program does not know.
std::optional<WireFormat> WireFormatFromProto(proto::WireFormat format);

}  // namespace covey
