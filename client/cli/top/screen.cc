// SPDX-License-Identifier: Apache-2.0
#include "client/cli/top/screen.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "client/cli/console/text_file.h"

namespace covey::cli {

Screen::Screen() {
  tcgetattr(STDIN_FILENO, &before_);
  termios keys = before_;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  WriteAll(STDOUT_FILENO, "\033[?1049h\033[?25l");
}

Screen::~Screen() {
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  WriteAll(STDOUT_FILENO, "\033[?25h\033[?1049l");
}

std::optional<char> Screen::TakeKey() {
  pollfd typed = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  if (poll(&typed, 1, /*timeout=*/0) <= 0) return std::nullopt;
  char key = 'q';
  if (read(STDIN_FILENO, &key, 1) != 1) return 'q';
  return key;
}

std::pair<size_t, size_t> Screen::Size() const {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return {80, 24};
  }
  return {size.ws_col, size.ws_row};
}

void Screen::Draw(const std::vector<std::string>& lines) {
  if (lines == drawn_) return;
  std::string text = drawn_.empty() ? "\033[2J" : "";
  for (size_t row = 0; row < lines.size(); ++row) {
    if (row < drawn_.size() && drawn_[row] == lines[row]) continue;
    absl::StrAppend(&text, "\033[", row + 1, ";1H", lines[row], "\033[K");
  }
  WriteAll(STDOUT_FILENO, text);
  drawn_ = lines;
}

}  // namespace covey::cli
