// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace covey::cli {

// The output of a command. On a terminal, a block of lines may stay at the bottom while others
// scroll above it. Confined to one thread. A reader that has gone is no error.
class Terminal {
 public:
  enum class Stream { kOutput, kError };

  Terminal();
  // Removes the block.
  ~Terminal();

  void Print(Stream stream, absl::string_view line);
  // The same behind "label | ", in a color of the label's own on a terminal with colors. Labels are
  // padded to the widest so far.
  void Print(Stream stream, absl::string_view label, absl::string_view line);

  // Whether the output is a terminal that can show a block.
  bool interactive() const { return interactive_; }
  // How many lines a block may have.
  size_t block_lines_max() const;
  // Replaces the present block; lines are cut to the terminal's width. Only when interactive.
  void SetBlock(std::vector<std::string> lines);
  // Redraws the block when lines were printed since. Call it before waiting.
  void Redraw();

 private:
  void EraseBlock();

  const bool interactive_;
  bool output_has_colors_;
  bool error_has_colors_;
  size_t label_width_ = 0;
  std::vector<std::string> block_;
  size_t lines_drawn_ = 0;
};

}  // namespace covey::cli
