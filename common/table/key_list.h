// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// Precondition: the keys ascend, and none comes twice.
EncodedKeys Encoded(std::span<const uint64_t> keys);
// Whether the frame may hold that list, by its size. Looks at no byte.
bool IsKeyFrame(const proto::KeyList& keys, const Buffer& frame);
// The keys, 8 bytes each. INVALID_ARGUMENT: the frame is not that list; says where. Precondition:
// the list is empty, or IsKeyFrame.
absl::StatusOr<Buffer> DecodedKeys(const proto::KeyList& list, const Buffer& frame);

}  // namespace covey
