// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey::cli {

// Keys of one `covey lookup`; more would be more text than anybody reads.
inline constexpr size_t kLookupKeysMax = size_t{1} << 20;

// "42", or "0x2a" with up to 16 hexadecimal digits. INVALID_ARGUMENT: no such number below 2^64.
absl::StatusOr<uint64_t> ParseKey(absl::string_view text);

// The keys of a text, with spaces or line ends between; # begins a comment to the end of its line.
// INVALID_ARGUMENT: names `source`, the line and the word that is no key; or there are more than
// kLookupKeysMax.
absl::StatusOr<std::vector<uint64_t>> ParseKeys(absl::string_view source, absl::string_view text);

}  // namespace covey::cli
