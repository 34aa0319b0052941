// SPDX-License-Identifier: Apache-2.0
#include "client/c/definitions.h"

#include <google/protobuf/util/json_util.h>

#include <cstdlib>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/edit_distance.h"
#include "common/base/status_macros.h"

namespace covey::c {
namespace {

// The known field nearest to `name`, in the message and those within it.
void FindNearest(const google::protobuf::Descriptor& message, absl::string_view name,
                 std::string& nearest, size_t& distance) {
  for (int i = 0; i < message.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *message.field(i);
    const size_t edits = EditDistance(name, field.name());
    if (edits < distance) {
      distance = edits;
      nearest = field.name();
    }
    if (field.message_type() != nullptr) {
      FindNearest(*field.message_type(), name, nearest, distance);
    }
  }
}

}  // namespace

absl::StatusOr<proto::TableSpec> TableSpecOf(absl::string_view json) {
  if (json.size() > kDefinitionBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat("the definition of a table has ", json.size(),
                                                   " bytes of JSON; at most ", kDefinitionBytesMax,
                                                   " are allowed"));
  }
  proto::TableSpec spec;
  const auto status =
      google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &spec);
  if (status.ok()) {
    if (spec.data_type() == proto::DATA_TYPE_UNSPECIFIED) spec.set_data_type(proto::FLOAT32);
    return spec;
  }
  const std::string reason(status.message().data(), status.message().size());
  std::string hint;
  // Protobuf writes "(optimizer) momentom: Cannot find field."
  const size_t at = reason.find(": Cannot find field");
  if (at != std::string::npos) {
    absl::string_view name = absl::string_view(reason).substr(0, at);
    name = name.substr(name.rfind(' ') + 1);
    size_t distance = name.size();
    std::string nearest;
    FindNearest(*proto::TableSpec::descriptor(), name, nearest, distance);
    hint = nearest.empty() ? "" : absl::StrCat(" Did you mean '", nearest, "'?");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the definition of a table is refused: ", reason, hint));
}

std::string JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  const auto status = google::protobuf::util::MessageToJsonString(message, &text, options);
  return status.ok() ? text : "{}";
}

absl::Status LoadSettings(const char* const* settings, ConfigFile& options) {
  std::vector<std::string> flags;
  for (; settings != nullptr && *settings != nullptr; ++settings) {
    const absl::string_view setting = *settings;
    if (setting.find('=') == absl::string_view::npos || absl::StartsWith(setting, "-")) {
      return absl::InvalidArgumentError(
          absl::StrCat("setting '", setting, "' has another form; write name=value"));
    }
    flags.push_back(absl::StrCat("--", setting));
  }
  COVEY_ASSIGN_OR_RETURN(const ConfigFile::Outcome outcome,
                         options.Load(flags, [](const char* name) { return std::getenv(name); }));
  if (outcome.print.has_value()) {
    return absl::InvalidArgumentError(
        "a setting asks to print; --help, --version and --print-config are for command lines");
  }
  return absl::OkStatus();
}

absl::StatusOr<WireFormat> FormatOf(int32_t format) {
  for (const WireFormat known : kWireFormats) {
    if (static_cast<int32_t>(known) == format) return known;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("wire format ", format,
                   " does not exist; use COVEY_FLOAT32, COVEY_FLOAT16, "
                   "COVEY_BFLOAT16, COVEY_SCALED_FLOAT16, COVEY_INT8, COVEY_FLOAT8 or COVEY_TOPK"));
}

absl::StatusOr<ElementType> ElementTypeOf(int32_t type) {
  for (const ElementType known : kElementTypes) {
    if (static_cast<int32_t>(known) == type) return known;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "element type ", type,
      " does not exist; use COVEY_ELEMENT_FLOAT32, COVEY_ELEMENT_FLOAT64, COVEY_ELEMENT_INT32, "
      "COVEY_ELEMENT_INT64 or COVEY_ELEMENT_BYTE"));
}

absl::StatusOr<ReduceOp> ReduceOpOf(int32_t operation) {
  for (const ReduceOp known : kReduceOps) {
    if (static_cast<int32_t>(known) == operation) return known;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("operation ", operation,
                   " does not exist; use COVEY_SUM, COVEY_PRODUCT, COVEY_MIN or COVEY_MAX"));
}

}  // namespace covey::c
