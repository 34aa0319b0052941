// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "worker/examples/rows/line_reader.h"

namespace covey::factorization {

// A mistake in the newest line: "reading FILE: line 3, column 17: PROBLEM". `column`: from 1, in
// bytes.
absl::Status MistakeAt(const examples::LineReader& lines, size_t column, absl::string_view problem);

// The same, at a field of the newest line, which it quotes, cut where it is long.
absl::Status MistakeIn(const examples::LineReader& lines, absl::string_view line,
                       absl::string_view field, absl::string_view problem);

// Absent unless all of the text is a number of that kind.
std::optional<float> FiniteNumber(absl::string_view text);
std::optional<uint64_t> DecimalKey(absl::string_view text);
// 1 to 16 digits, without 0x.
std::optional<uint64_t> HexKey(absl::string_view text);

}  // namespace covey::factorization
