// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/runtime/config_file.h"
#include "common/tensor/element_span.h"
#include "common/tensor/reduce_op.h"
#include "common/tensor/wire_format.h"
#include "proto/table.pb.h"

// What programs write as text: definitions of tables in JSON, and settings.
namespace covey::c {

// Longest JSON text of a definition.
inline constexpr size_t kDefinitionBytesMax = 64 << 10;

// INVALID_ARGUMENT: names the field, and the nearest known one.
absl::StatusOr<proto::TableSpec> TableSpecOf(absl::string_view json);
// Names of fields as in the .proto file; fields at their defaults are left out.
std::string JsonOf(const google::protobuf::Message& message);

// Sets the options from "name=value" strings that end with NULL, the environment and the file of
// COVEY_CONFIG. INVALID_ARGUMENT: names the setting, and the nearest known one.
absl::Status LoadSettings(const char* const* settings, ConfigFile& options);

// INVALID_ARGUMENT: not one of COVEY_FLOAT32 and so on.
absl::StatusOr<WireFormat> FormatOf(int32_t format);
// INVALID_ARGUMENT: not one of COVEY_ELEMENT_FLOAT32 and so on; of COVEY_SUM and so on.
absl::StatusOr<ElementType> ElementTypeOf(int32_t type);
absl::StatusOr<ReduceOp> ReduceOpOf(int32_t operation);

}  // namespace covey::c
