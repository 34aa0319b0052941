// SPDX-License-Identifier: Apache-2.0
#include "client/cli/model/safetensors.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey::cli {
namespace {

constexpr size_t kAlignment = 8;

const char* TypeName(WireFormat format) {
  switch (format) {
    case WireFormat::kFloat32:
      return "F32";
    case WireFormat::kFloat16:
      return "F16";
    case WireFormat::kBfloat16:
      return "BF16";
    case WireFormat::kInt8Block:
      break;
  }
  return nullptr;
}

}  // namespace

uint64_t SafetensorsEntry::elements() const {
  uint64_t product = 1;
  for (const uint64_t extent : shape) product *= extent;
  return product;
}

bool SafetensorsHas(WireFormat format) { return TypeName(format) != nullptr; }

std::string SafetensorsHead(WireFormat format, std::span<const SafetensorsEntry> entries,
                            std::span<const std::pair<std::string, std::string>> notes) {
  COVEY_CHECK(SafetensorsHas(format));
  nlohmann::ordered_json json;
  for (const auto& [name, text] : notes) json["__metadata__"][name] = text;
  uint64_t begin = 0;
  for (const SafetensorsEntry& entry : entries) {
    COVEY_CHECK(!json.contains(entry.name));
    const uint64_t end = begin + EncodedBytes(format, entry.elements());
    json[entry.name] = {
        {"dtype", TypeName(format)}, {"shape", entry.shape}, {"data_offsets", {begin, end}}};
    begin = end;
  }
  std::string text = entries.empty() && notes.empty() ? "{}" : json.dump();
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  std::string head;
  for (int byte = 0; byte < 8; ++byte) {
    head.push_back(static_cast<char>(uint64_t{text.size()} >> (8 * byte)));
  }
  return absl::StrCat(head, text);
}

}  // namespace covey::cli
