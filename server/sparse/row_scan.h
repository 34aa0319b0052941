// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/buffer.h"
#include "common/cluster/limits.h"

namespace covey::server {

// Which rows of a shard are read: those with MixBits(key) >= first, ascending by it, up to a size.
// A value.
struct RowScan {
  uint64_t first = 0;
  // Only rows that changed after this version, and the keys of rows that went after it.
  std::optional<uint64_t> since = {};
  // Where the piece ends: bytes of keys and values, of which one row may take more, and entries of
  // the index that are looked at. At least 1.
  size_t bytes_max = kScanBytesMax;
  size_t entries_max = kScanEntriesMax;
};

// A piece of a scan. It is complete for MixBits(key) in [RowScan.first, last].
struct ScannedRows {
  uint64_t last = 0;
  // Of rows, ascending by MixBits(key): 8 bytes for each key, and the values.
  Buffer keys = {};
  Buffer values = {};
  // 8 bytes for each key whose row went, in order of time; one may come several times, and its row
  // may have been made again.
  Buffer removed = {};
};

}  // namespace covey::server
