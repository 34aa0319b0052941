// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace covey::cli {

// Fields of a JSON object that another program wrote, perhaps an older version of this one: a field
// that is missing, or of another type, is zero or empty. Pure. Precondition: `object` is an object.

double NumberIn(const nlohmann::json& object, const char* name);
uint64_t CountIn(const nlohmann::json& object, const char* name);
std::string TextIn(const nlohmann::json& object, const char* name);
// Elements of another type are left out.
std::vector<double> NumbersIn(const nlohmann::json& object, const char* name);
std::vector<std::string> TextsIn(const nlohmann::json& object, const char* name);

}  // namespace covey::cli
