// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "proto/tensor.pb.h"

namespace covey {

// Keys of rows of a sparse table as they travel: a list in the envelope, and its bytes in a frame.
struct EncodedKeys {
  proto::KeyList list;
  Buffer frame;  // empty when the list is
  // Checksum of the frame; nothing = not computed yet.
  std::optional<uint32_t> checksum = std::nullopt;
};

// The name of a list of keys: 128 bits that depend on each key and on how many there are. Two lists
// have the same name by chance once in 2^128 pairs. The bits are the same in every process. A
// program whose keys others choose has to know that names are no protection: they can find two
// lists of one name, by which this program would get rows of the one for those of the other.
struct KeyListName {
  uint64_t low = 0;
  uint64_t high = 0;

  bool is_none() const { return low == 0 && high == 0; }
  friend auto operator<=>(const KeyListName&, const KeyListName&) = default;
};

// None where the list has no name.
inline KeyListName NameOf(const proto::KeyList& list) {
  return {.low = list.name_low(), .high = list.name_high()};
}
// Gives the list its name; an empty one gets none. Takes about a nanosecond for 8 bytes of the
// frame.
void SetName(EncodedKeys& keys);
// Whether the list goes by its name: its keys have no frame in the message.
inline bool IsNamed(const proto::KeyList& list) { return list.encoding() == proto::KeyList::NAMED; }

// Precondition: the keys ascend, and none comes twice.
EncodedKeys Encoded(std::span<const uint64_t> keys);
// Whether the frame may hold that list, by its size; never of one that goes by its name. Looks at
// no byte.
bool IsKeyFrame(const proto::KeyList& keys, const Buffer& frame);
// The keys, 8 bytes each. INVALID_ARGUMENT: the frame is not that list; says where. Precondition:
// the list is empty, or IsKeyFrame.
absl::StatusOr<Buffer> DecodedKeys(const proto::KeyList& list, const Buffer& frame);

}  // namespace covey
