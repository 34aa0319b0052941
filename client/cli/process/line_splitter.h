// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace covey::cli {

// Cuts a process's output into lines, whatever the sizes of the pieces in which it arrives. A line
// longer than kLineBytesMax is passed on in several pieces, so that memory stays bounded. Pure.
class LineSplitter {
 public:
  using Take = std::function<void(absl::string_view line)>;
  static constexpr size_t kLineBytesMax = 64 << 10;

  // Calls `take` for each complete line, without its line break.
  void Add(absl::string_view bytes, const Take& take);
  // The process writes no more: the rest is a line, too.
  void Finish(const Take& take);

 private:
  std::string rest_;
};

}  // namespace covey::cli
