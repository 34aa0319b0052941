// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/samples.h"

#include "common/base/random.h"

namespace covey::factorization {

uint64_t TextKey(absl::string_view text) {
  uint64_t key = text.size();
  for (size_t i = 0; i < text.size(); i += 8) {
    uint64_t word = 0;
    for (size_t j = i; j < text.size() && j < i + 8; ++j) {
      word = word << 8 | static_cast<uint8_t>(text[j]);
    }
    key = MixBits(key ^ MixBits(word));
  }
  return key;
}

}  // namespace covey::factorization
