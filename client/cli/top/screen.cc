// SPDX-License-Identifier: Apache-2.0
#include "client/cli/top/screen.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "client/cli/console/text_file.h"
#include "common/base/check.h"

namespace covey::cli {
namespace {

int OpenSignals() {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH}) sigaddset(&handled, signal);
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  const int descriptor = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  COVEY_CHECK(descriptor >= 0);
  return descriptor;
}

}  // namespace

Screen::Screen() : signals_(OpenSignals()) {
  tcgetattr(STDIN_FILENO, &before_);
  termios keys = before_;
  keys.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  tcsetattr(STDIN_FILENO, TCSANOW, &keys);
  WriteAll(STDOUT_FILENO, "\033[?1049h\033[?25l");
}

Screen::~Screen() {
  WriteAll(STDOUT_FILENO, "\033[?25h\033[?1049l");
  tcsetattr(STDIN_FILENO, TCSANOW, &before_);
  close(signals_);
}

std::optional<int> Screen::TakeSignal() {
  signalfd_siginfo info;
  if (read(signals_, &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
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
