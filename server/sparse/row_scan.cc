// SPDX-License-Identifier: Apache-2.0

// Reading all rows of a shard, or those that changed.

#include "server/sparse/row_scan.h"

#include <algorithm>
#include <span>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/random.h"
#include "common/tensor/row_copy.h"
#include "server/sparse/sparse_shard.h"

namespace covey::server {
namespace {

// Rows that are on their way from memory while others are copied.
constexpr size_t kRowsAhead = 16;

Buffer BufferOf(const std::vector<uint64_t>& keys) {
  return keys.empty() ? Buffer()
                      : Buffer::CopyOf({reinterpret_cast<const uint8_t*>(keys.data()),
                                        keys.size() * sizeof(uint64_t)});
}

}  // namespace

absl::Status SparseShard::CheckScan(const RowScan& scan) const {
  if (scan.first < first_place_ || scan.first > last_mixed()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a scan from slot ", scan.first >> 48, " on: the shard holds ", config_.slot_count,
        " slots from ", config_.first_slot, " on; route it by the newest view"));
  }
  if (!scan.since) return absl::OkStatus();
  if (*scan.since > version_) {
    return absl::OutOfRangeError(
        absl::StrCat("changes after version ", *scan.since, " are asked for, and the shard is at ",
                     version_, ": that version is of another history; read all rows again"));
  }
  if (*scan.since < removed_.floor()) {
    return absl::OutOfRangeError(
        absl::StrCat("changes after version ", *scan.since,
                     " are asked for, and which rows went is known after version ",
                     removed_.floor(), " only; read all rows again, and then changes more often"));
  }
  return absl::OkStatus();
}

ScannedRows SparseShard::Scan(const RowScan& scan) const {
  COVEY_CHECK(CheckScan(scan).ok());
  const size_t row_bytes = layout_.value_bytes();
  const size_t rows_max = std::max<size_t>(scan.bytes_max / (row_bytes + sizeof(uint64_t)), 1);
  ScannedRows piece{.last = last_mixed()};
  std::vector<uint64_t> keys;
  std::vector<const uint8_t*> rows;
  size_t seen = 0;
  index_.VisitFrom((scan.first - first_place_) << shift_, [&](const IndexEntry& entry) {
    if (keys.size() == rows_max || seen == scan.entries_max) {
      piece.last = MixedAt(entry.place) - 1;
      return false;
    }
    ++seen;
    // A row that 2^32 updates did not change counts as young, and is read once more than it must.
    const uint64_t age = static_cast<uint32_t>(static_cast<uint32_t>(version_) - entry.stamp);
    if (IsPending(entry) || (scan.since && age >= version_ - *scan.since)) return true;
    keys.push_back(KeyOf(entry.place));
    rows.push_back(values_.Row(entry.row));
    return true;
  });
  piece.keys = BufferOf(keys);
  if (!rows.empty()) piece.values = Buffer::Allocate(rows.size() * row_bytes);
  uint8_t* to = rows.empty() ? nullptr : piece.values.MutableData();
  for (size_t i = 0; i < rows.size(); ++i, to += row_bytes) {
    if (i + kRowsAhead < rows.size()) {
      const uint8_t* const ahead = rows[i + kRowsAhead];
      for (size_t line = 0; line < row_bytes; line += 64) __builtin_prefetch(ahead + line);
    }
    CopyRow(rows[i], row_bytes, to);
  }
  if (!scan.since) return piece;
  std::vector<uint64_t> removed;
  removed_.VisitAfter(*scan.since, [&](uint64_t mixed) {
    if (mixed >= scan.first && mixed <= piece.last) removed.push_back(UnmixBits(mixed));
  });
  piece.removed = BufferOf(removed);
  return piece;
}

}  // namespace covey::server
