// SPDX-License-Identifier: Apache-2.0
#include "common/format/safetensors_writer.h"

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"

namespace covey {
namespace {

constexpr size_t kAlignment = 8;

// Text between quotation marks.
std::string Quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', /*ensure_ascii=*/false,
                                   nlohmann::json::error_handler_t::replace);
}

std::string NotesEntry(const SafetensorsNotes& notes) {
  std::string json = R"("__metadata__":{)";
  absl::btree_set<absl::string_view> names;
  for (const auto& [name, text] : notes) {
    COVEY_CHECK(names.insert(name).second);
    absl::StrAppend(&json, names.size() > 1 ? "," : "", Quoted(name), ":", Quoted(text));
  }
  return absl::StrCat(json, "}");
}

}  // namespace

std::string SafetensorsHead(std::span<const SafetensorsTensor> tensors,
                            const SafetensorsNotes& notes) {
  std::string json = "{";
  if (!notes.empty()) absl::StrAppend(&json, NotesEntry(notes));
  absl::btree_set<absl::string_view> names = {"__metadata__"};
  uint64_t begin = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    COVEY_CHECK(names.insert(tensor.name).second);
    uint64_t end = 0;
    COVEY_CHECK(!__builtin_add_overflow(begin, tensor.Bytes().value(), &end));
    absl::StrAppend(&json, json.size() > 1 ? "," : "", Quoted(tensor.name), R"(:{"dtype":")",
                    SafetensorsTypeName(tensor.type), R"(","shape":[)",
                    absl::StrJoin(tensor.shape, ","), R"(],"data_offsets":[)", begin, ",", end,
                    "]}");
    begin = end;
  }
  absl::StrAppend(&json, "}");
  json.append((kAlignment - json.size() % kAlignment) % kAlignment, ' ');

  std::string head;
  for (int byte = 0; byte < 8; ++byte) {
    head.push_back(static_cast<char>(uint64_t{json.size()} >> (8 * byte)));
  }
  return absl::StrCat(head, json);
}

}  // namespace covey
