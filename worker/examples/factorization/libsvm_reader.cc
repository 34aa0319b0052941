// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/libsvm_reader.h"

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "worker/examples/factorization/fields.h"
#include "worker/examples/factorization/sample_file.h"
#include "worker/examples/rows/line_reader.h"

namespace covey::factorization {
namespace {

absl::Status AddTo(const examples::LineReader& lines, absl::string_view line, Samples& samples) {
  bool is_first = true;
  bool label = false;
  for (const absl::string_view field :
       absl::StrSplit(line.substr(0, line.find('#')), absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    if (is_first) {
      const std::optional<float> number = FiniteNumber(field);
      if (!number) return MistakeIn(lines, line, field, "is no label; write 1, 0 or -1");
      label = *number > 0;
      is_first = false;
      continue;
    }
    const size_t colon = field.find(':');
    if (colon == absl::string_view::npos) {
      return MistakeIn(lines, line, field, "is no feature; write INDEX:VALUE");
    }
    const absl::string_view index = field.substr(0, colon);
    const std::optional<uint64_t> key = DecimalKey(index);
    if (!key) return MistakeIn(lines, line, index, "is no index; write a number below 2^64");
    const absl::string_view text = field.substr(colon + 1);
    const std::optional<float> value = FiniteNumber(text);
    if (!value) return MistakeIn(lines, line, text, "is no value; write a finite number");
    samples.AddFeature(*key, *value);
  }
  if (!is_first) samples.AddSample(label);
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Samples> ReadLibsvm(const std::string& path) {
  return ReadSamples(path, AddTo, "it has no sample");
}

}  // namespace covey::factorization
