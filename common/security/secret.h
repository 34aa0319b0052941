// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "absl/strings/string_view.h"

namespace covey {

// Bytes of a private key: never copied, and overwritten when they go. Actor-confined.
class Secret {
 public:
  Secret() = default;
  // `size` bytes, all 0.
  explicit Secret(size_t size) : bytes_(std::make_unique<char[]>(size)), size_(size) {}
  Secret(Secret&& other) noexcept
      : bytes_(std::move(other.bytes_)), size_(std::exchange(other.size_, 0)) {}
  Secret& operator=(Secret&& other) noexcept;
  ~Secret() { Clear(); }

  std::span<char> bytes() { return {bytes_.get(), size_}; }
  absl::string_view view() const { return {bytes_.get(), size_}; }
  // Overwrites and drops all but the first `size` bytes.
  void Truncate(size_t size);

 private:
  void Clear() { Truncate(0); }

  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
};

}  // namespace covey
