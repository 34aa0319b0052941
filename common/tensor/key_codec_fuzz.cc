// SPDX-License-Identifier: Apache-2.0
// Lists of keys. An input is the number of keys in its lowest 7 bits and the encoding in the
// highest, then the bytes.
#include "common/tensor/key_codec.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/check.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  std::vector<std::string> seeds;
  for (const std::vector<uint64_t>& keys :
       {std::vector<uint64_t>{}, std::vector<uint64_t>{0}, std::vector<uint64_t>{3, 4, 200, 70'000},
        std::vector<uint64_t>{uint64_t{1} << 40, ~uint64_t{0}}}) {
    std::vector<uint8_t> bytes;
    const KeyEncoding encoding = EncodeKeys(keys, bytes);
    std::string seed(1, static_cast<char>(keys.size() | (encoding == KeyEncoding::kGaps) << 7));
    seed.append(bytes.begin(), bytes.end());
    seeds.push_back(seed);
  }
  return seeds;
}

bool FuzzOne(std::span<const uint8_t> input) {
  if (input.empty()) return false;
  const KeyEncoding encoding = input[0] & 0x80 ? KeyEncoding::kGaps : KeyEncoding::kPlain;
  std::vector<uint64_t> keys(input[0] & 0x7f);
  const std::span<const uint8_t> bytes = input.subspan(1);
  if (!DecodeKeys(encoding, bytes, keys).ok()) return false;
  COVEY_CHECK(std::is_sorted(keys.begin(), keys.end()));
  COVEY_CHECK(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
  // A list has one form in each encoding.
  std::vector<uint8_t> again;
  if (EncodeKeys(keys, again) == encoding) {
    COVEY_CHECK(std::equal(again.begin(), again.end(), bytes.begin(), bytes.end()));
  }
  return true;
}

}  // namespace covey
