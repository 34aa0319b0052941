// SPDX-License-Identifier: Apache-2.0
#include "client/cli/console/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/console/text_file.h"

namespace covey::cli {
namespace {

// Readable on light and on dark.
constexpr int kColors[] = {36, 32, 33, 35, 34, 31};
constexpr size_t kBlockLinesMax = 12;

winsize SizeOfTerminal() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    size.ws_col = 80;
    size.ws_row = 24;
  }
  return size;
}

// A label has the same color in every run.
int ColorOf(absl::string_view label) {
  size_t sum = 0;
  for (const char letter : label) sum = sum * 31 + static_cast<unsigned char>(letter);
  return kColors[sum % std::size(kColors)];
}

}  // namespace

Terminal::Terminal()
    : interactive_(isatty(STDERR_FILENO)),
      output_has_colors_(isatty(STDOUT_FILENO)),
      error_has_colors_(interactive_) {}

Terminal::~Terminal() { EraseBlock(); }

void Terminal::Print(Stream stream, absl::string_view line) {
  EraseBlock();
  WriteAll(stream == Stream::kOutput ? STDOUT_FILENO : STDERR_FILENO, absl::StrCat(line, "\n"));
}

void Terminal::Print(Stream stream, absl::string_view label, absl::string_view line) {
  label_width_ = std::max(label_width_, label.size());
  const std::string padded = absl::StrFormat("%-*s |", label_width_, label);
  const bool colors = stream == Stream::kOutput ? output_has_colors_ : error_has_colors_;
  Print(stream, colors ? absl::StrFormat("\033[%dm%s\033[0m %s", ColorOf(label), padded, line)
                       : absl::StrCat(padded, " ", line));
}

size_t Terminal::block_lines_max() const {
  return std::clamp<size_t>(SizeOfTerminal().ws_row / 2, 1, kBlockLinesMax);
}

void Terminal::SetBlock(std::vector<std::string> lines) {
  if (!interactive_) return;
  EraseBlock();
  block_ = std::move(lines);
  Redraw();
}

void Terminal::Redraw() {
  if (lines_drawn_ > 0 || block_.empty()) return;
  const size_t width = SizeOfTerminal().ws_col - 1;
  std::string text;
  for (const std::string& line : block_) {
    absl::StrAppend(&text, "\033[1m", line.substr(0, width), "\033[0m\n");
  }
  WriteAll(STDERR_FILENO, text);
  lines_drawn_ = block_.size();
}

void Terminal::EraseBlock() {
  if (lines_drawn_ == 0) return;
  WriteAll(STDERR_FILENO, absl::StrFormat("\r\033[%dA\033[J", lines_drawn_));
  lines_drawn_ = 0;
}

}  // namespace covey::cli
