// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "client/cli/bench/measure/turns.h"
#include "common/base/clock.h"

namespace covey::cli {

// Work on arrays of `bytes` each, piece by piece, again and again.
struct PieceLoop {
  uint64_t bytes = 0;
  // A turn takes at least this long.
  absl::Duration duration;
  // Bytes read and written for each byte of one array.
  double moved_per_byte = 1;
  // Small enough that a turn ends near its time.
  uint64_t piece_bytes = 4 << 20;
};

// One turn: calls `piece(offset, bytes)`; GB/s of bytes moved.
template <typename Piece>
Sample RunPieces(const PieceLoop& loop, const Piece& piece) {
  Sample sample;
  uint64_t offset = 0;
  const absl::Time begin = MonotonicNow();
  do {
    const uint64_t size = std::min(loop.piece_bytes, loop.bytes - offset);
    piece(offset, size);
    ++sample.operations;
    sample.bytes += size;
    offset = offset + size == loop.bytes ? 0 : offset + size;
  } while (MonotonicNow() - begin < loop.duration);
  sample.values = {static_cast<double>(sample.bytes) * loop.moved_per_byte / 1e9 /
                   absl::ToDoubleSeconds(MonotonicNow() - begin)};
  return sample;
}

}  // namespace covey::cli
