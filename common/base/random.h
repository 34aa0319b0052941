// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace covey {

// Mixes 64 bits well (the finalizer of SplitMix64, Steele et al. 2014). Pure.
constexpr uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// The x whose MixBits(x) is `mixed`. Pure.
constexpr uint64_t UnmixBits(uint64_t mixed) {
  mixed = (mixed ^ (mixed >> 31) ^ (mixed >> 62)) * 0x319642b2d24d8ec3;
  mixed = (mixed ^ (mixed >> 27) ^ (mixed >> 54)) * 0x96de1b173f119089;
  mixed = mixed ^ (mixed >> 30) ^ (mixed >> 60);
  return mixed - 0x9e3779b97f4a7c15;
}

// The project's own generator (SplitMix64): the same numbers on every library and machine, which
// std:: distributions do not promise. Actor-confined. Not for secrets.
class Random {
 public:
  explicit constexpr Random(uint64_t seed) : state_(seed) {}

  constexpr uint64_t Next() {
    const uint64_t value = MixBits(state_);
    state_ += 0x9e3779b97f4a7c15;
    return value;
  }
  // Uniform in [0, bound); bound > 0. The bias of the multiply-shift is below 2^-32 for bound <
  // 2^32.
  constexpr uint64_t Below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(Next()) * bound) >> 64);
  }
  // Uniform in [0, 1).
  constexpr double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }
  constexpr bool Chance(double probability) { return Uniform() < probability; }
  // An independent stream; `name` tells streams of one seed apart.
  constexpr Random Split(uint64_t name) const { return Random(MixBits(state_ ^ MixBits(name))); }

 private:
  uint64_t state_;
};

// 64 bits from the operating system: incarnations and default seeds only.
uint64_t RandomFromSystem();

}  // namespace covey
