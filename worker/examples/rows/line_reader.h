// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey::examples {

// Reads the lines of a text file, plain or compressed by gzip, or of what a command prints.
// Confined to one thread.
class LineReader {
 public:
  ~LineReader();
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;

  // A longer line is refused, before memory is allocated for it.
  static constexpr size_t kLineBytesMax = size_t{4} << 20;

  // NOT_FOUND: the file cannot be opened; names it and the reason.
  static absl::StatusOr<LineReader> OpenFile(const std::string& path);
  // Runs a command of the shell. UNAVAILABLE: it cannot be started.
  static absl::StatusOr<LineReader> OpenCommand(const std::string& command);

  // The next line, without its end; absent after the last one. Valid until the next call.
  // DATA_LOSS: the file is damaged or not readable, a line is too long, or the command has failed.
  absl::StatusOr<std::optional<absl::string_view>> Next();

  // The newest line's, from 1.
  uint64_t number() const { return number_; }
  // The file's path, or the command in backquotes.
  const std::string& name() const { return name_; }

 private:
  struct Input;
  LineReader(std::string name, std::unique_ptr<Input> input);

  // Appends to buffer_. False: nothing is left.
  absl::StatusOr<bool> ReadMore();
  absl::Status DamagedError(absl::string_view problem) const;

  std::string name_;
  std::unique_ptr<Input> input_;
  std::string buffer_;
  size_t begin_ = 0;  // of what has not been returned yet
  uint64_t number_ = 0;
};

}  // namespace covey::examples
