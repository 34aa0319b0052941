// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/synthetic/step_trace.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace covey::synthetic {
namespace {

// Whole lines are written at once, so that lines of several processes do not mix.
constexpr size_t kBytesKept = 4096 - 128;

absl::Status Failed(const char* doing, const std::string& path) {
  return absl::UnavailableError(absl::StrCat(doing, " ", path, ": ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<StepTrace> StepTrace::Open(const std::string& path) {
  if (path.empty()) return StepTrace(path, -1);
  const int descriptor = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) return Failed("opening", path);
  return StepTrace(path, descriptor);
}

StepTrace::StepTrace(std::string path, int descriptor)
    : path_(std::move(path)), descriptor_(descriptor) {}

StepTrace::StepTrace(StepTrace&& other) noexcept
    : path_(other.path_),
      descriptor_(std::exchange(other.descriptor_, -1)),
      lines_(std::move(other.lines_)) {}

StepTrace::~StepTrace() {
  if (descriptor_ < 0) return;
  Flush().IgnoreError();
  close(descriptor_);
}

void StepTrace::Add(uint32_t worker, uint64_t step, absl::Duration compute, absl::Duration whole) {
  if (descriptor_ < 0) return;
  absl::StrAppendFormat(
      &lines_, "{\"worker\":%u,\"step\":%u,\"compute_seconds\":%.6f,\"step_seconds\":%.6f}\n",
      worker, step, absl::ToDoubleSeconds(compute), absl::ToDoubleSeconds(whole));
  // The last Flush reports a write error.
  if (lines_.size() >= kBytesKept) Flush().IgnoreError();
}

absl::Status StepTrace::Flush() {
  while (!lines_.empty()) {
    const ssize_t written = write(descriptor_, lines_.data(), lines_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return Failed("writing", path_);
    lines_.erase(0, static_cast<size_t>(written));
  }
  return absl::OkStatus();
}

}  // namespace covey::synthetic
