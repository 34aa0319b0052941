// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/criteo_reader.h"

#include <cmath>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/random.h"
#include "worker/examples/factorization/fields.h"
#include "worker/examples/factorization/sample_file.h"
#include "worker/examples/rows/line_reader.h"

namespace covey::factorization {
namespace {

constexpr size_t kNumbers = 13;
constexpr size_t kIds = 26;
constexpr size_t kColumns = 1 + kNumbers + kIds;

absl::Status AddTo(const examples::LineReader& lines, absl::string_view line, Samples& samples) {
  const std::vector<absl::string_view> columns = absl::StrSplit(line, '\t');
  if (columns.size() != kColumns) {
    return MistakeAt(lines, line.size() + 1,
                     absl::StrCat("the line ends after ", columns.size(), " columns instead of ",
                                  kColumns, ", which tabs separate"));
  }
  if (columns[0] != "0" && columns[0] != "1") {
    return MistakeIn(lines, line, columns[0], "is no label; write 0 or 1");
  }
  for (size_t i = 1; i <= kNumbers; ++i) {
    const absl::string_view text = columns[i];
    if (text.empty()) continue;
    int64_t number = 0;
    // SimpleAtoi would skip spaces around it.
    if (absl::ascii_isspace(text.front()) || absl::ascii_isspace(text.back()) ||
        !absl::SimpleAtoi(text, &number)) {
      return MistakeIn(lines, line, text, "is no whole number");
    }
    samples.AddFeature(CriteoNumberKey(i, number), 1);
  }
  for (size_t i = 1; i <= kIds; ++i) {
    const absl::string_view text = columns[kNumbers + i];
    if (text.empty()) continue;
    const std::optional<uint64_t> id = HexKey(text);
    if (!id) return MistakeIn(lines, line, text, "is no id of 1 to 16 hexadecimal digits");
    samples.AddFeature(CriteoIdKey(i, *id), 1);
  }
  samples.AddSample(columns[0] == "1");
  return absl::OkStatus();
}

}  // namespace

uint64_t CriteoNumberKey(uint64_t column, int64_t number) {
  if (number > 2) {
    const double log = std::log(static_cast<double>(number));
    // Above the numbers that stand for themselves.
    number = 3 + static_cast<int64_t>(log * log);
  }
  return MixBits(MixBits(column) ^ static_cast<uint64_t>(number));
}

uint64_t CriteoIdKey(uint64_t column, uint64_t id) {
  return MixBits(MixBits(kNumbers + column) ^ id);
}

absl::StatusOr<Samples> ReadCriteo(const std::string& path) {
  return ReadSamples(path, AddTo, "it has no line");
}

}  // namespace covey::factorization
