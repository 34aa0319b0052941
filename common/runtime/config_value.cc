// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/config_value.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/edit_distance.h"

namespace covey {
namespace {

struct Unit {
  absl::string_view name;
  uint64_t bytes;
};
// The units that FormatBytes may choose come first, the largest ahead.
constexpr Unit kUnits[] = {
    {"TiB", uint64_t{1} << 40},
    {"GiB", uint64_t{1} << 30},
    {"MiB", uint64_t{1} << 20},
    {"KiB", uint64_t{1} << 10},
    {"TB", 1000000000000},
    {"GB", 1000000000},
    {"MB", 1000000},
    {"KB", 1000},
    {"kB", 1000},
    {"B", 1},
    {"", 1},
};
constexpr size_t kBinaryUnits = 4;

template <typename Integer>
absl::Status ReadInteger(absl::string_view text, Integer* field) {
  if (absl::SimpleAtoi(text, field)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("not a whole number from ",
                                                 std::numeric_limits<Integer>::min(), " to ",
                                                 std::numeric_limits<Integer>::max()));
}

}  // namespace

absl::Status ReadValue(absl::string_view text, std::string* field) {
  *field = std::string(text);
  return absl::OkStatus();
}
absl::Status ReadValue(absl::string_view text, bool* field) {
  return absl::SimpleAtob(text, field) ? absl::OkStatus()
                                       : absl::InvalidArgumentError("neither true nor false");
}
absl::Status ReadValue(absl::string_view text, int32_t* field) { return ReadInteger(text, field); }
absl::Status ReadValue(absl::string_view text, uint32_t* field) { return ReadInteger(text, field); }
absl::Status ReadValue(absl::string_view text, uint64_t* field) { return ReadInteger(text, field); }
absl::Status ReadValue(absl::string_view text, double* field) {
  return absl::SimpleAtod(text, field) && std::isfinite(*field)
             ? absl::OkStatus()
             : absl::InvalidArgumentError("not a number");
}
absl::Status ReadValue(absl::string_view text, absl::Duration* field) {
  return absl::ParseDuration(text, field) && *field >= absl::ZeroDuration()
             ? absl::OkStatus()
             : absl::InvalidArgumentError("not a duration; write it like 500ms, 2s or 1h30m");
}
absl::Status ReadValue(absl::string_view text, std::vector<std::string>* field) {
  *field = absl::StrSplit(text, ',', absl::SkipEmpty());
  return absl::OkStatus();
}

std::string WriteValue(const std::string& value) { return value; }
std::string WriteValue(bool value) { return value ? "true" : "false"; }
std::string WriteValue(int32_t value) { return absl::StrCat(value); }
std::string WriteValue(uint32_t value) { return absl::StrCat(value); }
std::string WriteValue(uint64_t value) { return absl::StrCat(value); }
std::string WriteValue(double value) {
  // As short as possible, and exact.
  for (const int digits : {6, 15}) {
    const std::string text = absl::StrFormat("%.*g", digits, value);
    double read = 0;
    if (absl::SimpleAtod(text, &read) && read == value) return text;
  }
  return absl::StrFormat("%.17g", value);
}
std::string WriteValue(absl::Duration value) { return absl::FormatDuration(value); }
std::string WriteValue(const std::vector<std::string>& value) { return absl::StrJoin(value, ","); }

absl::StatusOr<uint64_t> ParseBytes(absl::string_view text) {
  for (const Unit& unit : kUnits) {
    absl::string_view number = text;
    if (!absl::ConsumeSuffix(&number, unit.name)) continue;
    uint64_t count = 0;
    if (number.empty() || !absl::ascii_isdigit(static_cast<unsigned char>(number.back())) ||
        !absl::SimpleAtoi(number, &count) ||
        count > std::numeric_limits<uint64_t>::max() / unit.bytes) {
      break;
    }
    return count * unit.bytes;
  }
  return absl::InvalidArgumentError("not a size; write it like 4096, 64KiB or 256MiB");
}

std::string FormatBytes(uint64_t bytes) {
  for (size_t i = 0; i < kBinaryUnits; ++i) {
    if (bytes != 0 && bytes % kUnits[i].bytes == 0) {
      return absl::StrCat(bytes / kUnits[i].bytes, kUnits[i].name);
    }
  }
  return absl::StrCat(bytes);
}

std::string EnvironmentVariableOf(absl::string_view name) {
  return absl::StrCat("COVEY_", absl::StrReplaceAll(absl::AsciiStrToUpper(name), {{"-", "_"}}));
}

std::string NearestName(absl::string_view name, const std::vector<std::string>& known) {
  COVEY_CHECK(!known.empty());
  return *std::min_element(known.begin(), known.end(),
                           [&](const std::string& a, const std::string& b) {
                             return EditDistance(a, name) < EditDistance(b, name);
                           });
}

}  // namespace covey
