// SPDX-License-Identifier: Apache-2.0
#include "client/cli/lookup/lookup_keys.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace covey::cli {
namespace {

constexpr size_t kQuotedMax = 40;

absl::Status NoKey(absl::string_view text) {
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::CHexEscape(text.substr(0, kQuotedMax)),
                   "' is no key; write a number below 2^64, as 42 or 0x2a"));
}

}  // namespace

absl::StatusOr<uint64_t> ParseKey(absl::string_view text) {
  absl::string_view digits = text;
  const bool is_hex = absl::ConsumePrefix(&digits, "0x");
  uint64_t key = 0;
  // SimpleAtoi and SimpleHexAtoi would take signs, spaces and a second prefix.
  for (const char c : digits) {
    if (!(is_hex ? absl::ascii_isxdigit(c) : absl::ascii_isdigit(c))) return NoKey(text);
  }
  if (!(is_hex ? absl::SimpleHexAtoi(digits, &key) : absl::SimpleAtoi(digits, &key))) {
    return NoKey(text);
  }
  return key;
}

absl::StatusOr<std::vector<uint64_t>> ParseKeys(absl::string_view source, absl::string_view text) {
  std::vector<uint64_t> keys;
  uint64_t number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    for (const absl::string_view word : absl::StrSplit(
             line.substr(0, line.find('#')), absl::ByAnyChar(" \t\r"), absl::SkipEmpty())) {
      const absl::StatusOr<uint64_t> key = ParseKey(word);
      if (!key.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat(source, ", line ", number, ": ", key.status().message()));
      }
      if (keys.size() == kLookupKeysMax) {
        return absl::InvalidArgumentError(absl::StrCat(source, ", line ", number, ": more than ",
                                                       kLookupKeysMax,
                                                       " keys; look up fewer at a time"));
      }
      keys.push_back(*key);
    }
  }
  return keys;
}

}  // namespace covey::cli
