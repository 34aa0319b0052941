// SPDX-License-Identifier: Apache-2.0
#include "common/net/shm/shm_ring.h"

#include <array>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey {
namespace {

constexpr size_t kAlignment = ShmRingWriter::Padded(1);

}  // namespace

void ShmRingWriter::WriteHead(size_t at, uint32_t bytes, uint32_t kind) {
  const std::array<uint32_t, 2> head = {bytes, kind};
  std::memcpy(&ring_[at], head.data(), sizeof(head));
}

absl::StatusOr<std::span<uint8_t>> ShmRingWriter::Reserve(size_t bytes) {
  COVEY_CHECK(bytes <= PayloadMax(ring_.size()));
  const uint64_t in_use = at_ - read_.load();
  if (in_use > ring_.size()) {
    return absl::DataLossError(absl::StrCat("the reader of a ring is ", -in_use, " bytes ahead"));
  }
  const size_t record = kHeadBytes + Padded(bytes);
  size_t at = at_ % ring_.size();
  const size_t to_end = ring_.size() - at;
  const size_t skipped = record <= to_end ? 0 : to_end;
  if (in_use + skipped + record > ring_.size()) return std::span<uint8_t>();
  if (skipped > 0) {
    WriteHead(at, static_cast<uint32_t>(skipped), kSkip);
    at = 0;
  }
  WriteHead(at, static_cast<uint32_t>(record), kPayload);
  reserved_ = at_ + skipped + record;
  return ring_.subspan(at + kHeadBytes, bytes);
}

void ShmRingWriter::Publish() {
  at_ = reserved_;
  written_.store(at_);
}

absl::StatusOr<bool> ShmRingReader::Next(std::vector<uint8_t>& payload) {
  for (bool has_skipped = false;; has_skipped = true) {
    const uint64_t ready = written_.load() - at_;
    if (ready == 0) return false;
    const size_t at = at_ % ring_.size();
    std::array<uint32_t, 2> head;
    if (ready > ring_.size() || ready % kAlignment != 0) {
      return absl::DataLossError(absl::StrCat("a ring's writer is ", ready, " bytes ahead"));
    }
    std::memcpy(head.data(), &ring_[at], sizeof(head));
    const auto [bytes, kind] = head;
    const bool is_skip = kind == ShmRingWriter::kSkip && !has_skipped && bytes == ring_.size() - at;
    if (bytes < sizeof(head) || bytes % kAlignment != 0 || bytes > ready ||
        bytes > ring_.size() - at || (kind != ShmRingWriter::kPayload && !is_skip)) {
      return absl::DataLossError(
          absl::StrCat("a ring has a record of ", bytes, " bytes and kind ", kind));
    }
    if (kind == ShmRingWriter::kPayload) {
      const auto from = ring_.subspan(at + sizeof(head), bytes - sizeof(head));
      payload.assign(from.begin(), from.end());
    }
    at_ += bytes;
    read_.store(at_);
    if (kind == ShmRingWriter::kPayload) return true;
  }
}

}  // namespace covey
