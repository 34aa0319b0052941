// SPDX-License-Identifier: Apache-2.0
#include "common/security/seal/direction.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/security/seal/hkdf.h"

namespace covey {
namespace {

// Of this use of the keys. Another derivation takes another label.
constexpr absl::string_view kLabel = "covey data plane 1";

// Fields of fixed size, one after the other, little endian: no two directions have the same bytes.
class Info {
 public:
  Info() : bytes_(kLabel.begin(), kLabel.end()) {}
  template <std::unsigned_integral T>
  void Add(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }
  void Add(const NodeKey::Public& key) { bytes_.insert(bytes_.end(), key.begin(), key.end()); }
  std::span<const uint8_t> bytes() const { return bytes_; }

 private:
  std::vector<uint8_t> bytes_;
};

}  // namespace

absl::StatusOr<Secret> PairSecret(const Secret& agreed) {
  std::array<uint8_t, kLabel.size()> salt;
  std::copy(kLabel.begin(), kLabel.end(), salt.begin());
  return HkdfExtract(salt, agreed);
}

absl::StatusOr<PartCipher> MakeCipher(PartCipher::Use use, const Secret& pair,
                                      const Direction& direction, uint64_t generation) {
  Info info;
  info.Add(direction.job);
  info.Add(direction.sender_key);
  info.Add(direction.receiver_key);
  info.Add(direction.sender.node.value());
  info.Add(direction.receiver.node.value());
  info.Add(direction.sender.loop);
  info.Add(direction.receiver.loop);
  info.Add(generation);
  COVEY_ASSIGN_OR_RETURN(
      const Secret key,
      HkdfExpand(pair, info.bytes(), PartCipher::kKeyBytes + PartCipher::kSaltBytes));
  return PartCipher::Make(use, key);
}

}  // namespace covey
