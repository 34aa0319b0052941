// SPDX-License-Identifier: Apache-2.0
#include "common/table/key_list.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/tensor/key_codec.h"

namespace covey {
namespace {

// Absorbs words into both halves of a name. MixBits is a bijection, so lists that differ in one
// word only never agree.
struct Lane {
  uint64_t low;
  uint64_t high;

  void Absorb(uint64_t word) {
    low = MixBits(low ^ word);
    high = MixBits(high + word * 0xd6e8feb86659fd93);
  }
};

// Words go to the lanes in turns, because each step waits for the one before in its lane.
constexpr size_t kLanes = 4;

}  // namespace

void SetName(EncodedKeys& keys) {
  if (keys.list.count() == 0) return;
  std::array<Lane, kLanes> lanes;
  for (size_t i = 0; i < kLanes; ++i)
    lanes[i] = {.low = MixBits(2 * i), .high = MixBits(2 * i + 1)};
  const std::span<const uint8_t> bytes = keys.frame.bytes();
  constexpr size_t kWord = sizeof(uint64_t);
  const auto word_at = [&](size_t begin) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + begin, std::min(kWord, bytes.size() - begin));
    return word;
  };
  size_t begin = 0;
  for (; begin + kLanes * kWord <= bytes.size(); begin += kLanes * kWord) {
    for (size_t i = 0; i < kLanes; ++i) lanes[i].Absorb(word_at(begin + i * kWord));
  }
  for (size_t i = 0; begin < bytes.size(); begin += kWord, ++i) lanes[i].Absorb(word_at(begin));
  Lane name = lanes[0];
  for (size_t i = 1; i < kLanes; ++i) {
    name.low = MixBits(name.low ^ lanes[i].low);
    name.high = MixBits(name.high ^ lanes[i].high);
  }
  name.Absorb(bytes.size());
  name.Absorb(keys.list.count());
  name.Absorb(keys.list.encoding());
  // 0 means no name.
  keys.list.set_name_low(std::max<uint64_t>(name.low, 1));
  keys.list.set_name_high(name.high);
}

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
  return proto::KeyList::Encoding_IsValid(keys.encoding()) && !IsNamed(keys) && keys.count() > 0 &&
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
