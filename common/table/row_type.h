// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "common/tensor/wire_format.h"
#include "proto/table.pb.h"

namespace covey {

// How the values of a sparse table's rows are stored, and travel in replies. Nothing for a type
// that this program does not know. Pure.
std::optional<WireFormat> RowTypeFromProto(proto::DataType type);

}  // namespace covey
