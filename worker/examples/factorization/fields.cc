// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/fields.h"

#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace covey::factorization {
namespace {

constexpr size_t kQuotedMax = 40;

}  // namespace

absl::Status MistakeAt(const examples::LineReader& lines, size_t column,
                       absl::string_view problem) {
  return absl::DataLossError(absl::StrCat("reading ", lines.name(), ": line ", lines.number(),
                                          ", column ", column, ": ", problem));
}

absl::Status MistakeIn(const examples::LineReader& lines, absl::string_view line,
                       absl::string_view field, absl::string_view problem) {
  const auto column = static_cast<size_t>(field.data() - line.data()) + 1;
  return MistakeAt(lines, column,
                   absl::StrCat("'", absl::CHexEscape(field.substr(0, kQuotedMax)),
                                field.size() > kQuotedMax ? "..." : "", "' ", problem));
}

std::optional<float> FiniteNumber(absl::string_view text) {
  float number = 0;
  // SimpleAtof would skip spaces around it.
  if (text.empty() || absl::ascii_isspace(text.front()) || absl::ascii_isspace(text.back()) ||
      !absl::SimpleAtof(text, &number) || !std::isfinite(number)) {
    return std::nullopt;
  }
  return number;
}

std::optional<uint64_t> DecimalKey(absl::string_view text) {
  uint64_t key = 0;
  // SimpleAtoi would take signs and spaces.
  if (text.empty() || !absl::ascii_isdigit(text.front()) || !absl::ascii_isdigit(text.back()) ||
      !absl::SimpleAtoi(text, &key)) {
    return std::nullopt;
  }
  return key;
}

std::optional<uint64_t> HexKey(absl::string_view text) {
  if (text.empty() || text.size() > 16) return std::nullopt;
  uint64_t key = 0;
  for (const char c : text) {
    if (!absl::ascii_isxdigit(c)) return std::nullopt;
    const int digit = absl::ascii_isdigit(c) ? c - '0' : absl::ascii_tolower(c) - 'a' + 10;
    key = key << 4 | static_cast<uint64_t>(digit);
  }
  return key;
}

}  // namespace covey::factorization
