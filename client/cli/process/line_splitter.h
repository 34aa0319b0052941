// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "absl/strings/string_view.h"

namespace covey::cli {

// Cuts what a process writes into lines, whatever the sizes in which it arrives. A line longer than
// kLineBytesMax comes in several pieces, so that no program makes the launcher grow. Pure.
class LineSplitter {
 public:
  using Take = std::function<void(absl::string_view line)>;
  static constexpr size_t kLineBytesMax = 64 << 10;

  // Calls `take` for each line that is complete by now, without its line break.
  void Add(absl::string_view bytes, const Take& take);
  // The process writes no more: what is left is a line too.
  void Finish(const Take& take);

 private:
  std::string rest_;
};

}  // namespace covey::cli
