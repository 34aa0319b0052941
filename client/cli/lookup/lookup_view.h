// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace covey::cli {

// Rows that `covey lookup` has read.
struct LookedUpRows {
  std::string table;
  // Elements of a row; at least 1.
  size_t width = 1;
  std::vector<uint64_t> keys;
  // A row for each key, in order.
  std::vector<float> values;
  // Lowest among the shards.
  uint64_t version = 0;
  // Since a shard's last update, the longest.
  double age_seconds = 0;
};

// For humans: a line for each key. At most this many columns; the last cell says how many follow.
inline constexpr size_t kColumnsShown = 8;
std::string LookupText(const LookedUpRows& rows);

// {"table", "width", "version", "age_seconds", "rows": [{"key", "values"}, ...]}. Keys are texts,
// because many readers of JSON lose the last digits of large numbers. A value that is not finite is
// null.
std::string LookupJson(const LookedUpRows& rows);

}  // namespace covey::cli
