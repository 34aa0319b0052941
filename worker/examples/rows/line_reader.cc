// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/rows/line_reader.h"

#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace covey::examples {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;

std::string Reason() {
  // When zlib lacks memory it does not set errno.
  return errno != 0 ? std::strerror(errno) : "out of memory";
}

}  // namespace

struct LineReader::Input {
  ~Input() {
    // First its reader, so that a command that still writes ends.
    if (file != nullptr) gzclose_r(file);
    if (pipe != nullptr) pclose(pipe);
  }

  gzFile file = nullptr;
  FILE* pipe = nullptr;  // of a command
};

LineReader::LineReader(std::string name, std::unique_ptr<Input> input)
    : name_(std::move(name)), input_(std::move(input)) {}

LineReader::~LineReader() = default;
LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;

absl::StatusOr<LineReader> LineReader::OpenFile(const std::string& path) {
  auto input = std::make_unique<Input>();
  errno = 0;
  input->file = gzopen(path.c_str(), "rb");
  if (input->file == nullptr) {
    return absl::NotFoundError(absl::StrCat("opening ", path, ": ", Reason()));
  }
  return LineReader(path, std::move(input));
}

absl::StatusOr<LineReader> LineReader::OpenCommand(const std::string& command) {
  auto input = std::make_unique<Input>();
  errno = 0;
  input->pipe = popen(command.c_str(), "re");
  const int descriptor = input->pipe != nullptr ? dup(fileno(input->pipe)) : -1;
  if (descriptor >= 0) input->file = gzdopen(descriptor, "rb");
  if (input->file == nullptr) {
    const std::string reason = Reason();
    if (descriptor >= 0) close(descriptor);
    return absl::UnavailableError(absl::StrCat("starting `", command, "`: ", reason));
  }
  return LineReader(absl::StrCat("`", command, "`"), std::move(input));
}

absl::StatusOr<std::optional<absl::string_view>> LineReader::Next() {
  size_t searched = begin_;
  for (;;) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      const absl::string_view line = absl::string_view(buffer_).substr(begin_, end - begin_);
      begin_ = end + 1;
      ++number_;
      return absl::StripSuffix(line, "\r");
    }
    searched = buffer_.size() - begin_;  // ReadMore drops what was returned.
    COVEY_ASSIGN_OR_RETURN(const bool more, ReadMore());
    if (more) continue;
    if (buffer_.empty()) return std::nullopt;
    begin_ = buffer_.size();
    ++number_;
    return absl::StripSuffix(absl::string_view(buffer_), "\r");
  }
}

absl::StatusOr<bool> LineReader::ReadMore() {
  buffer_.erase(0, std::exchange(begin_, 0));
  if (buffer_.size() > kLineBytesMax) {
    return DamagedError(
        absl::StrCat("line ", number_ + 1, " has more than ", kLineBytesMax, " bytes"));
  }
  const size_t known = buffer_.size();
  buffer_.resize(known + kReadBytes);
  errno = 0;
  const int count = gzread(input_->file, &buffer_[known], kReadBytes);
  buffer_.resize(known + static_cast<size_t>(count > 0 ? count : 0));
  int error = Z_OK;
  const char* reason = gzerror(input_->file, &error);
  if (error == Z_ERRNO) return DamagedError(Reason());
  if (error == Z_BUF_ERROR) return DamagedError("the compressed file is truncated");
  if (error != Z_OK) return DamagedError(absl::StrCat("zlib refuses it: ", reason));
  if (count > 0) return true;
  if (input_->pipe == nullptr) return false;
  const int ended = pclose(std::exchange(input_->pipe, nullptr));
  if (ended == 0) return false;
  return DamagedError(WIFEXITED(ended) ? absl::StrCat("it ended with code ", WEXITSTATUS(ended))
                                       : "it was killed");
}

absl::Status LineReader::DamagedError(absl::string_view problem) const {
  return absl::DataLossError(absl::StrCat("reading ", name_, ": ", problem));
}

}  // namespace covey::examples
