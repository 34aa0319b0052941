// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <utility>

namespace covey {

// An integer of its own type: node, table, shard and epoch numbers cannot be mixed up.
// Immutable value; no arithmetic except Next(). Zero is "none" wherever absence has a meaning.
template <typename Tag, typename Representation = uint64_t>
class StrongId {
 public:
  constexpr StrongId() = default;
  constexpr explicit StrongId(Representation value) : value_(value) {}

  constexpr Representation value() const { return value_; }
  constexpr StrongId Next() const { return StrongId(value_ + 1); }

  friend constexpr auto operator<=>(StrongId, StrongId) = default;
  template <typename H>
  friend H AbslHashValue(H state, StrongId id) {
    return H::combine(std::move(state), id.value_);
  }

 private:
  Representation value_ = 0;
};

}  // namespace covey
