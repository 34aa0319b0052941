// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <termios.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace covey::cli {

// The whole terminal, as long as this object exists: the alternate screen, no cursor, and keys that
// arrive as they are pressed. The destructor brings back what was there. At most one object per
// process. Confined to one thread.
class Screen {
 public:
  Screen();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  // The next key; nothing when there is none, 'q' at the end of the input.
  std::optional<char> TakeKey();
  // Columns and rows; 80 and 24 where the terminal does not tell.
  std::pair<size_t, size_t> Size() const;
  // Shows these lines from the top, unless they are there already.
  void Draw(const std::vector<std::string>& lines);
  // The terminal has changed: the next Draw draws everything.
  void Forget() { drawn_.clear(); }

 private:
  termios before_ = {};
  std::vector<std::string> drawn_;
};

}  // namespace covey::cli
