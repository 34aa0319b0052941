// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "common/cluster/ids.h"
#include "common/net/wire.h"
#include "common/security/seal/part_cipher.h"

namespace covey {

// What the head frame of a sealed message says in the clear, and where its other fields are; drawn
// in common/net/wire.h. Pure.
struct SealedHead {
  Address sender;
  Address receiver;
  uint64_t number = 0;
  size_t frames = 0;
  size_t envelope_bytes = 0;

  // Size of the whole head frame.
  size_t bytes() const { return envelope_offset() + envelope_bytes; }
  size_t frame_tag_offset(size_t frame) const;
  size_t envelope_tag_offset() const { return frame_tag_offset(frames); }
  size_t envelope_offset() const { return envelope_tag_offset() + PartCipher::kTagBytes; }
};

// Writes all but tags and envelope. Precondition: `to` has head.bytes() bytes.
void WriteSealedHead(const SealedHead& head, std::span<uint8_t> to);
// INVALID_ARGUMENT: not a head frame, or beyond the limits; FAILED_PRECONDITION: that of a plain
// message.
absl::StatusOr<SealedHead> ReadSealedHead(std::span<const uint8_t> from, const WireLimits& limits);

// The numbers under which the parts of a message are sealed.
inline PartCipher::Number EnvelopeNumber(const SealedHead& head) {
  return {.message = head.number, .part = 0};
}
inline PartCipher::Number FrameNumber(const SealedHead& head, size_t frame) {
  return {.message = head.number, .part = static_cast<uint32_t>(frame + 1)};
}

// The tag at this offset of a head frame.
inline std::span<uint8_t, PartCipher::kTagBytes> TagAt(std::span<uint8_t> head, size_t offset) {
  return head.subspan(offset).first<PartCipher::kTagBytes>();
}

}  // namespace covey
