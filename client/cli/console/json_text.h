// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <string>

namespace covey::cli {

// JSON as the command line prints it. Pure.

// The message with the field names of the protocol, including fields that have their default value.
nlohmann::ordered_json ToJson(const google::protobuf::Message& message);
// Indented, with a newline at the end. Replaces invalid UTF-8.
std::string JsonText(const nlohmann::ordered_json& json);

}  // namespace covey::cli
