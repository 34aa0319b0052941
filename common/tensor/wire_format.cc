// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/wire_format.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace covey {

const char* WireFormatName(WireFormat format) {
  switch (format) {
    case WireFormat::kFloat32:
      return "float32";
    case WireFormat::kFloat16:
      return "float16";
    case WireFormat::kBfloat16:
      return "bfloat16";
    case WireFormat::kInt8Block:
      return "int8";
    case WireFormat::kFloat16Block:
      return "scaled-float16";
    case WireFormat::kFloat8Block:
      return "float8";
    case WireFormat::kTopBlock:
      return "topk";
  }
  return "unknown";
}

absl::StatusOr<WireFormat> ParseWireFormat(absl::string_view name) {
  std::string names;
  for (const WireFormat format : kWireFormats) {
    if (name == WireFormatName(format)) return format;
    absl::StrAppend(&names, names.empty() ? "" : ", ", WireFormatName(format));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("no wire format is called '", name, "'; choose one of ", names));
}

}  // namespace covey
