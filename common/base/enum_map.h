// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <utility>

namespace covey {

// A conversion between two enum types that stand for the same things, one of them generated from a
// proto. Make it constexpr and let the compiler check it:
//
//   constexpr EnumMap kKinds({std::pair(Kind::kA, proto::A), std::pair(Kind::kB, proto::B)});
//   static_assert(kKinds.IsOneToOne() && kKinds.size() == proto::Kind_ARRAYSIZE);
//
// so that a value which is added on one side only does not compile. Pure. O(size) per conversion.
template <typename Ours, typename Theirs, size_t kSize>
class EnumMap {
 public:
  using Pair = std::pair<Ours, Theirs>;

  constexpr explicit EnumMap(const Pair (&pairs)[kSize]) {
    for (size_t i = 0; i < kSize; ++i) {
      ours_[i] = pairs[i].first;
      theirs_[i] = pairs[i].second;
    }
  }

  static constexpr size_t size() { return kSize; }

  // Nothing for a value of a newer version, which this program does not know.
  constexpr std::optional<Ours> ToOurs(Theirs value) const {
    for (size_t i = 0; i < kSize; ++i) {
      if (theirs_[i] == value) return ours_[i];
    }
    return std::nullopt;
  }
  // Precondition: `value` is an enumerator.
  constexpr Theirs ToTheirs(Ours value) const {
    for (size_t i = 0; i + 1 < kSize; ++i) {
      if (ours_[i] == value) return theirs_[i];
    }
    return theirs_[kSize - 1];
  }

  constexpr bool IsOneToOne() const {
    for (size_t i = 0; i < kSize; ++i) {
      for (size_t j = 0; j < i; ++j) {
        if (ours_[i] == ours_[j] || theirs_[i] == theirs_[j]) return false;
      }
    }
    return true;
  }

 private:
  std::array<Ours, kSize> ours_{};
  std::array<Theirs, kSize> theirs_{};
};

template <typename Ours, typename Theirs, size_t kSize>
EnumMap(const std::pair<Ours, Theirs> (&)[kSize]) -> EnumMap<Ours, Theirs, kSize>;

}  // namespace covey
