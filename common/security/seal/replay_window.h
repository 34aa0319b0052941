// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace covey {

// Which messages of one sender have arrived, by number: each is accepted once, whatever the order
// in which they come, as long as it is not older than the newest one by kMessages or more (the
// window of RFC 6479, which clears whole words as it moves). Numbers may be left out.
// Actor-confined.
class ReplayWindow {
 public:
  static constexpr uint64_t kMessages = 1024;

  // Whether the message is new.
  bool IsNew(uint64_t number) const {
    if (number > newest_ || (number == newest_ && !any_)) return true;
    if (newest_ - number >= kMessages) return false;
    return (words_[WordOf(number)] & BitOf(number)) == 0;
  }

  // Notes that the message has arrived and is genuine: anyone could move the window otherwise.
  // Precondition: IsNew(number).
  void Note(uint64_t number) {
    if (!any_ || number > newest_) {
      const uint64_t steps = any_ ? number / kBits - newest_ / kBits : kWords;
      for (uint64_t i = 1; i <= steps && i <= kWords; ++i) {
        words_[(number / kBits + kWords + 1 - i) % kWords] = 0;
      }
      newest_ = number;
      any_ = true;
    }
    words_[WordOf(number)] |= BitOf(number);
  }

 private:
  static constexpr uint64_t kBits = 64;
  // One more than the window takes, because the newest word is rarely full.
  static constexpr uint64_t kWords = kMessages / kBits + 1;

  static size_t WordOf(uint64_t number) { return (number / kBits) % kWords; }
  static uint64_t BitOf(uint64_t number) { return uint64_t{1} << (number % kBits); }

  bool any_ = false;
  uint64_t newest_ = 0;
  std::array<uint64_t, kWords> words_ = {};
};

}  // namespace covey
