// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/shell_words.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "common/base/check.h"

namespace covey::cli {
namespace {

// Means nothing to any shell, wherever in a word it stands.
bool IsPlain(char letter) {
  return absl::ascii_isalnum(letter) || absl::StrContains("_-./:,@+", letter);
}

}  // namespace

std::string ShellWord(absl::string_view word) {
  COVEY_CHECK(!absl::StrContains(word, '\0'));
  if (!word.empty() && std::all_of(word.begin(), word.end(), IsPlain)) return std::string(word);
  // Between single quotes fish reads a backslash before a quote or another backslash; other shells
  // do not. So both stand outside of the quotes.
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", R"('\'')"}, {"\\", R"('\\')"}}), "'");
}

std::string ShellLine(const std::vector<std::string>& words) {
  return absl::StrJoin(words, " ", [](std::string* line, const std::string& word) {
    absl::StrAppend(line, ShellWord(word));
  });
}

}  // namespace covey::cli
