// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <utility>

namespace covey {

// An open file descriptor, closed by the destructor. Movable.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this == &other) return *this;
    Close();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }

  int number() const { return number_; }
  bool open() const { return number_ >= 0; }
  void Close() {
    if (open()) close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

}  // namespace covey
