// SPDX-License-Identifier: Apache-2.0
#include "client/cli/console/json_text.h"

#include <google/protobuf/util/json_util.h>

#include "common/base/check.h"

namespace covey::cli {

nlohmann::ordered_json ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.always_print_primitive_fields = true;
  std::string text;
  COVEY_CHECK(google::protobuf::util::MessageToJsonString(message, &text, options).ok());
  return nlohmann::ordered_json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string JsonText(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace covey::cli
