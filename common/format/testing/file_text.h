// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/format/npy.h"
#include "common/format/safetensors_reader.h"

namespace covey {

// Files of the tests, as text.

inline std::span<const uint8_t> BytesOf(absl::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// A head with this JSON text, with a length that is right.
inline std::string HeadOf(absl::string_view json) {
  std::string head;
  for (int byte = 0; byte < 8; ++byte) {
    head.push_back(static_cast<char>(uint64_t{json.size()} >> (8 * byte)));
  }
  return absl::StrCat(head, json);
}

// Reads a whole file, as a program does.
inline absl::StatusOr<SafetensorsContent> ReadSafetensors(absl::string_view file) {
  const auto bytes = BytesOf(file);
  COVEY_ASSIGN_OR_RETURN(
      const uint64_t head,
      SafetensorsHeadBytes(bytes.first(std::min(bytes.size(), kSafetensorsPrefixBytes)),
                           bytes.size()));
  return ReadSafetensorsHead(bytes.first(head), bytes.size());
}

inline absl::StatusOr<NpyArray> ReadNpy(absl::string_view file) {
  const auto bytes = BytesOf(file);
  COVEY_ASSIGN_OR_RETURN(
      const uint64_t head,
      NpyHeadBytes(bytes.first(std::min(bytes.size(), kNpyPrefixBytes)), bytes.size()));
  return ReadNpyHead(bytes.first(head), bytes.size());
}

// As in golden_npy.h.
inline std::string Describe(const NpyArray& array) {
  return absl::StrCat(WireFormatName(array.format), " [", absl::StrJoin(array.shape, ","), "] ",
                      array.begin);
}

// As in golden_safetensors.h.
inline std::string Describe(const SafetensorsContent& content) {
  std::vector<std::string> parts;
  for (const PlacedTensor& placed : content.tensors) {
    parts.push_back(absl::StrCat(placed.tensor.name, " ", SafetensorsTypeName(placed.tensor.type),
                                 " [", absl::StrJoin(placed.tensor.shape, ","), "] ", placed.begin,
                                 "-", placed.end));
  }
  for (const auto& [name, text] : content.notes) parts.push_back(absl::StrCat(name, "=", text));
  return absl::StrJoin(parts, "; ");
}

}  // namespace covey
