// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace covey::cli {

// Command lines for the shell of another host. Pure.

// The word as a shell reads it back, whatever it holds, and whether that shell is sh, bash, zsh or
// fish: in single quotes, unless it needs none. Precondition: no zero byte.
std::string ShellWord(absl::string_view word);

// All words with a blank between.
std::string ShellLine(const std::vector<std::string>& words);

}  // namespace covey::cli
