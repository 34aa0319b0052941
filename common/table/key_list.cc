// SPDX-License-Identifier: Apache-2.0
#include "common/table/key_list.h"

#include <vector>

#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/tensor/key_codec.h"

namespace covey {

EncodedKeys Encoded(std::span<const uint64_t> keys) {
  EncodedKeys encoded;
  if (keys.empty()) return encoded;
  std::vector<uint8_t> bytes;
  const KeyEncoding encoding = EncodeKeys(keys, bytes);
  encoded.list.set_encoding(encoding == KeyEncoding::kGaps ? proto::KeyList::GAPS
                                                           : proto::KeyList::PLAIN);
  encoded.list.set_count(static_cast<uint32_t>(keys.size()));
  encoded.frame = Buffer::CopyOf(bytes);
  return encoded;
}

bool IsKeyFrame(const proto::KeyList& keys, const Buffer& frame) {
  // A key takes at least a byte, and at most ten.
  return proto::KeyList::Encoding_IsValid(keys.encoding()) && keys.count() > 0 &&
         keys.count() <= kKeysPerRequestMax && frame.size() >= keys.count() &&
         frame.size() <= keys.count() * size_t{10};
}

absl::StatusOr<Buffer> DecodedKeys(const proto::KeyList& list, const Buffer& frame) {
  if (list.count() == 0) return Buffer();
  Buffer keys = Buffer::Allocate(list.count() * sizeof(uint64_t));
  const KeyEncoding encoding =
      list.encoding() == proto::KeyList::GAPS ? KeyEncoding::kGaps : KeyEncoding::kPlain;
  COVEY_RETURN_IF_ERROR(DecodeKeys(encoding, frame.bytes(), keys.MutableAs<uint64_t>()));
  return keys;
}

}  // namespace covey
