// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/key_codec.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace covey {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr size_t kVarintBytesMax = 10;

// Of a gap in LEB128.
size_t LengthOf(uint64_t gap) { return (std::bit_width(gap | 1) + 6) / 7; }

uint8_t* Append(uint64_t gap, uint8_t* to) {
  for (; gap >= 0x80; gap >>= 7) *to++ = static_cast<uint8_t>(gap) | 0x80;
  *to++ = static_cast<uint8_t>(gap);
  return to;
}

absl::Status Wrong(size_t key, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("key ", key, " of the list ", what));
}

absl::Status DecodePlain(std::span<const uint8_t> bytes, std::span<uint64_t> keys) {
  if (bytes.size() != keys.size_bytes()) {
    return absl::InvalidArgumentError(absl::StrCat("a list of ", keys.size(), " plain keys has ",
                                                   bytes.size(), " bytes, not ",
                                                   keys.size_bytes()));
  }
  if (!keys.empty()) std::memcpy(keys.data(), bytes.data(), bytes.size());
  for (size_t i = 1; i < keys.size(); ++i) {
    if (keys[i] <= keys[i - 1]) return Wrong(i, "is not greater than the one before");
  }
  return absl::OkStatus();
}

// Moves `from` behind the gap. 0 bytes were read: the gap is cut off, too long, or longer than it
// needs to be.
inline uint64_t ReadGap(const uint8_t*& from, const uint8_t* end, bool& is_valid) {
  uint64_t gap = 0;
  const size_t most = std::min<size_t>(end - from, kVarintBytesMax);
  for (size_t i = 0; i < most; ++i) {
    const uint64_t byte = from[i];
    gap |= (byte & 0x7f) << (7 * i);
    if (byte >= 0x80) continue;
    // The tenth byte has one bit, and a last byte of 0 says nothing.
    is_valid = (i + 1 < kVarintBytesMax || byte == 1) && (i == 0 || byte != 0);
    from += i + 1;
    return gap;
  }
  is_valid = false;
  return 0;
}

absl::Status DecodeGaps(std::span<const uint8_t> bytes, std::span<uint64_t> keys) {
  const uint8_t* from = bytes.data();
  const uint8_t* const end = from + bytes.size();
  uint64_t least = 0;  // that the next key may be
  for (size_t i = 0; i < keys.size(); ++i) {
    bool is_valid = true;
    const uint64_t gap = from < end && *from < 0x80 ? *from++ : ReadGap(from, end, is_valid);
    if (!is_valid) return Wrong(i, "is no number in LEB128, or the list ends before it");
    const uint64_t key = least + gap;
    if (key < least || (i > 0 && least == 0)) return Wrong(i, "is greater than 2^64 - 1");
    keys[i] = key;
    least = key + 1;
  }
  if (from != end) {
    return absl::InvalidArgumentError(
        absl::StrCat("a list of ", keys.size(), " keys has ", end - from, " bytes too many"));
  }
  return absl::OkStatus();
}

}  // namespace

KeyEncoding EncodeKeys(std::span<const uint64_t> keys, std::vector<uint8_t>& bytes) {
  size_t length = 0;
  uint64_t least = 0;
  for (const uint64_t key : keys) {
    length += LengthOf(key - least);
    least = key + 1;
  }
  const size_t before = bytes.size();
  if (length >= keys.size_bytes()) {
    bytes.resize(before + keys.size_bytes());
    if (!keys.empty()) std::memcpy(bytes.data() + before, keys.data(), keys.size_bytes());
    return KeyEncoding::kPlain;
  }
  bytes.resize(before + length);
  uint8_t* to = bytes.data() + before;
  least = 0;
  for (const uint64_t key : keys) {
    to = Append(key - least, to);
    least = key + 1;
  }
  return KeyEncoding::kGaps;
}

absl::Status DecodeKeys(KeyEncoding encoding, std::span<const uint8_t> bytes,
                        std::span<uint64_t> keys) {
  switch (encoding) {
    case KeyEncoding::kPlain:
      return DecodePlain(bytes, keys);
    case KeyEncoding::kGaps:
      return DecodeGaps(bytes, keys);
  }
  return absl::InvalidArgumentError(absl::StrCat("encoding ", static_cast<int>(encoding),
                                                 " of keys is not known here; run all processes of "
                                                 "the job in one version"));
}

}  // namespace covey
