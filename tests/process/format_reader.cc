// SPDX-License-Identifier: Apache-2.0
// Reads a file from standard input, `format_reader safetensors` or `format_reader npy`, and prints
// its content as testing/file_text.h describes it, or "refused: REASON".
#include <unistd.h>

#include <array>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/format/testing/file_text.h"

namespace covey {
namespace {

std::string ReadInput() {
  std::string input;
  std::array<char, 65536> piece;
  while (true) {
    const ssize_t count = read(STDIN_FILENO, piece.data(), piece.size());
    if (count <= 0) return input;
    input.append(piece.data(), static_cast<size_t>(count));
  }
}

template <typename Content>
std::string TextOf(const absl::StatusOr<Content>& content) {
  if (content.ok()) return Describe(*content);
  return absl::StrCat("refused: ", content.status().message());
}

}  // namespace

int Main(absl::string_view format) {
  const std::string file = ReadInput();
  const std::string text = format == "npy" ? TextOf(ReadNpy(file)) : TextOf(ReadSafetensors(file));
  return write(STDOUT_FILENO, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0
                                                                                             : 1;
}

}  // namespace covey

int main(int count, char** arguments) { return count == 2 ? covey::Main(arguments[1]) : 2; }
