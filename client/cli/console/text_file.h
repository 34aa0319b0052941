// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey::cli {

// File operations of the commands. All block; errors name the path.

// The folder that holds `path`: "a/" of "a/b", "." of "b". Pure.
std::string FolderOf(const std::string& path);

absl::StatusOr<std::string> ReadTextFile(const std::string& path);
// Replaces the file as a whole: a reader sees the old text or the new one.
absl::Status WriteTextFile(const std::string& path, absl::string_view text);
// Whether WriteTextFile could write there; lets a command check before long work.
absl::Status CheckWritable(const std::string& path);
// Creates the folder and its parents. OK when it already exists.
absl::Status MakeFolder(const std::string& path);
// With everything in it, as far as that can be removed.
void RemoveFolder(const std::string& path);

// A private folder that is deleted with all its content when this object is destroyed.
class TemporaryFolder {
 public:
  static absl::StatusOr<std::unique_ptr<TemporaryFolder>> Make();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  const std::string path_;
};

// A file that grows by lines; for logs.
class LogFile {
 public:
  enum class Existing { kEmptied, kKept };

  static absl::StatusOr<std::unique_ptr<LogFile>> Open(const std::string& path,
                                                       Existing existing = Existing::kEmptied);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // If the disk is full the line is lost, without further harm.
  void Append(absl::string_view line);

 private:
  explicit LogFile(int descriptor) : descriptor_(descriptor) {}

  const int descriptor_;
};

// Writes all of `bytes`, even when signals interrupt it; false when the descriptor takes no more.
bool WriteAll(int descriptor, absl::string_view bytes);

}  // namespace covey::cli
