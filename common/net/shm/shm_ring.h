// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace covey {

// A ring of records between one writer and one reader, each of which keeps its own position where
// the other one can only read it. Positions count bytes since the start.
//
//   record   0           4           8
//            +-----------+-----------+---------------------------+
//            | bytes u32 | kind u32  | payload, padded to 8      |
//            +-----------+-----------+---------------------------+
//   bytes    of the whole record, a multiple of 8
//   kind     1 = a payload; 2 = nothing: the rest of the ring is skipped, and a payload follows
//
// A record lies in one piece. Integers are those of the machine: both processes run on it.
//
// Reader and writer may be different threads or processes; each object is confined to one thread.
// Neither trusts the other's bytes: whatever they are, no access is outside the ring.
//
// Positions are stored and loaded in sequentially consistent order, so that a side that says that
// it sleeps and then looks at the ring cannot miss what the other side writes before it looks
// whether to wake it.

class ShmRingWriter {
 public:
  // `ring`: its size is a multiple of 8. `written` is the writer's own position, `read` the
  // reader's.
  ShmRingWriter(std::span<uint8_t> ring, std::atomic<uint64_t>& written,
                const std::atomic<uint64_t>& read)
      : ring_(ring), written_(written), read_(read) {}

  // The largest payload that fits whenever the reader has read everything.
  static constexpr size_t PayloadMax(size_t ring_bytes) { return ring_bytes / 2 - kHeadBytes; }

  // The bytes that a payload of this size takes in its record.
  static constexpr size_t Padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

  // Where to write the next payload; empty when the ring has no room for it now.
  // Precondition: `bytes` <= PayloadMax. DATA_LOSS: the reader's position is impossible.
  absl::StatusOr<std::span<uint8_t>> Reserve(size_t bytes);
  // Shows the reader what was reserved last. The reader sees the payload, and whatever the writer
  // did before.
  void Publish();

 private:
  friend class ShmRingReader;
  static constexpr size_t kHeadBytes = 8;
  static constexpr uint32_t kPayload = 1;
  static constexpr uint32_t kSkip = 2;

  void WriteHead(size_t at, uint32_t bytes, uint32_t kind);

  const std::span<uint8_t> ring_;
  std::atomic<uint64_t>& written_;
  const std::atomic<uint64_t>& read_;
  uint64_t at_ = 0;        // what `written_` says
  uint64_t reserved_ = 0;  // what it will say
};

class ShmRingReader {
 public:
  // As ShmRingWriter, from the other side.
  ShmRingReader(std::span<const uint8_t> ring, const std::atomic<uint64_t>& written,
                std::atomic<uint64_t>& read)
      : ring_(ring), written_(written), read_(read) {}

  bool HasInput() const { return written_.load() != at_; }
  // Copies the next payload, with its padding, into `payload`, and makes room for the writer.
  // False: there is none yet. DATA_LOSS: these are no records.
  absl::StatusOr<bool> Next(std::vector<uint8_t>& payload);

 private:
  const std::span<const uint8_t> ring_;
  const std::atomic<uint64_t>& written_;
  std::atomic<uint64_t>& read_;
  uint64_t at_ = 0;  // what `read_` says
};

}  // namespace covey
