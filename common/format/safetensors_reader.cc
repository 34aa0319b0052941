// SPDX-License-Identifier: Apache-2.0
#include "common/format/safetensors_reader.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/format/safetensors_text.h"

namespace covey {
namespace {

const std::string& NameOf(const SafetensorsEntry& entry) { return entry.tensor.name; }
const std::string& NameOf(const SafetensorsNotes::value_type& note) { return note.first; }

// Sorts the entries or notes by name. Fails where a name occurs twice.
template <typename Named>
absl::Status SortByName(std::vector<Named>& all, absl::string_view subject) {
  std::sort(all.begin(), all.end(),
            [](const Named& a, const Named& b) { return NameOf(a) < NameOf(b); });
  const auto twice = std::adjacent_find(all.begin(), all.end(), [](const Named& a, const Named& b) {
    return NameOf(a) == NameOf(b);
  });
  if (twice == all.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(subject, " ", ShowName(NameOf(*twice)), ": the name occurs twice"));
}

// The tensors in the order of their data, which must fill `data_bytes` without gap or overlap.
absl::StatusOr<std::vector<PlacedTensor>> Place(std::vector<SafetensorsEntry> entries,
                                                uint64_t data_begin, uint64_t data_bytes) {
  // Of those that begin together, all but the last are empty. Stable, so sorted by name.
  std::stable_sort(entries.begin(), entries.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
                   });
  std::vector<PlacedTensor> placed;
  placed.reserve(entries.size());
  uint64_t filled = 0;
  for (SafetensorsEntry& entry : entries) {
    const auto fail = [&](const auto&... reason) {
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", ShowName(entry.tensor.name), ": ", reason...));
    };
    const absl::StatusOr<uint64_t> bytes = entry.tensor.Bytes();
    if (!bytes.ok()) return fail(bytes.status().message());
    if (entry.begin != filled) {
      return fail("its data begin at byte ", entry.begin,
                  " of the data, and those before it end at ", filled,
                  entry.begin < filled ? ": they overlap" : ": there is a hole");
    }
    if (entry.end < entry.begin || entry.end - entry.begin != *bytes) {
      return fail("data_offsets ", entry.begin, " to ", entry.end, " for ", *bytes,
                  " bytes of data");
    }
    if (entry.end > data_bytes) {
      return fail("its data end at byte ", entry.end, " of the data, which has ", data_bytes);
    }
    filled = entry.end;
    placed.push_back({.tensor = std::move(entry.tensor),
                      .begin = data_begin + entry.begin,
                      .end = data_begin + entry.end});
  }
  if (filled != data_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("byte ", data_begin + filled,
                                                   ": the last tensor ends here, and the file has ",
                                                   data_bytes - filled, " bytes more"));
  }
  return placed;
}

}  // namespace

absl::StatusOr<uint64_t> SafetensorsHeadBytes(std::span<const uint8_t> prefix,
                                              uint64_t file_bytes) {
  if (prefix.size() < kSafetensorsPrefixBytes || file_bytes < kSafetensorsPrefixBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("a safetensors file begins with 8 bytes of length; the file has ",
                     std::min<uint64_t>(prefix.size(), file_bytes), " bytes"));
  }
  uint64_t text_bytes = 0;
  for (size_t byte = kSafetensorsPrefixBytes; byte-- > 0;) {
    text_bytes = text_bytes << 8 | prefix[byte];
  }
  if (text_bytes > SafetensorsLimits::kTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("byte 0: a head of ", text_bytes, " bytes; at most ",
                     SafetensorsLimits::kTextBytes, " are allowed. Is it a safetensors file?"));
  }
  if (text_bytes > file_bytes - kSafetensorsPrefixBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("byte 0: a head of ", text_bytes, " bytes, and the file has ", file_bytes));
  }
  return kSafetensorsPrefixBytes + text_bytes;
}

absl::StatusOr<SafetensorsContent> ReadSafetensorsHead(std::span<const uint8_t> head,
                                                       uint64_t file_bytes) {
  COVEY_ASSIGN_OR_RETURN(const uint64_t head_bytes, SafetensorsHeadBytes(head, file_bytes));
  if (head.size() != head_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the head has ", head_bytes, " bytes; given are ", head.size()));
  }
  absl::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
  text.remove_prefix(kSafetensorsPrefixBytes);
  if (text.empty() || text.front() != '{') {
    return absl::InvalidArgumentError("byte 8: the head does not begin with '{'");
  }
  while (text.back() == ' ') text.remove_suffix(1);
  if (text.back() != '}') {
    return absl::InvalidArgumentError(absl::StrCat("byte ",
                                                   kSafetensorsPrefixBytes + text.size() - 1,
                                                   ": the head does not end with '}' and spaces"));
  }
  // The parser would take such a byte for the end of the text.
  if (const size_t zero = text.find('\0'); zero != text.npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("byte ", kSafetensorsPrefixBytes + zero, ": a zero byte"));
  }
  SafetensorsText reader;
  reader.Read(text);
  COVEY_RETURN_IF_ERROR(reader.status());
  COVEY_RETURN_IF_ERROR(SortByName(reader.entries(), "tensor"));
  COVEY_RETURN_IF_ERROR(SortByName(reader.notes(), "__metadata__"));
  COVEY_ASSIGN_OR_RETURN(std::vector<PlacedTensor> tensors,
                         Place(std::move(reader.entries()), head_bytes, file_bytes - head_bytes));
  return SafetensorsContent{.tensors = std::move(tensors), .notes = std::move(reader.notes())};
}

}  // namespace covey
