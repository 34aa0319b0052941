// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/measure/json_fields.h"

namespace covey::cli {

double NumberIn(const nlohmann::json& object, const char* name) {
  const auto field = object.find(name);
  return field != object.end() && field->is_number() ? field->get<double>() : 0;
}

uint64_t CountIn(const nlohmann::json& object, const char* name) {
  const auto field = object.find(name);
  return field != object.end() && field->is_number_unsigned() ? field->get<uint64_t>() : 0;
}

std::string TextIn(const nlohmann::json& object, const char* name) {
  const auto field = object.find(name);
  return field != object.end() && field->is_string() ? field->get<std::string>() : "";
}

std::vector<double> NumbersIn(const nlohmann::json& object, const char* name) {
  std::vector<double> numbers;
  const auto field = object.find(name);
  if (field == object.end() || !field->is_array()) return numbers;
  for (const nlohmann::json& element : *field) {
    if (element.is_number()) numbers.push_back(element.get<double>());
  }
  return numbers;
}

std::vector<std::string> TextsIn(const nlohmann::json& object, const char* name) {
  std::vector<std::string> texts;
  const auto field = object.find(name);
  if (field == object.end() || !field->is_array()) return texts;
  for (const nlohmann::json& element : *field) {
    if (element.is_string()) texts.push_back(element.get<std::string>());
  }
  return texts;
}

}  // namespace covey::cli
