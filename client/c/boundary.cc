// SPDX-License-Identifier: Apache-2.0
#include "client/c/boundary.h"

#include <cmath>
#include <cstddef>
#include <cstdlib>

#include "absl/strings/str_cat.h"

namespace covey::c {
namespace {

// Where the longest prefix of at most `bytes_max` bytes ends that does not cut a UTF-8 character.
size_t CutAt(absl::string_view text, size_t bytes_max) {
  if (text.size() <= bytes_max) return text.size();
  size_t end = bytes_max;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return end;
}

absl::Status NoNumber(double seconds) {
  return absl::InvalidArgumentError(
      absl::StrCat("a time is ", seconds, " seconds; give zero or more"));
}

}  // namespace

covey_code Report(const absl::Status& status, covey_error* error) {
  if (error == nullptr) return status.raw_code();
  error->code = status.raw_code();
  constexpr size_t kMessageAt = offsetof(covey_error, message);
  if (error->struct_size <= kMessageAt) return error->code;
  const size_t room = std::min<size_t>(error->struct_size, sizeof(covey_error)) - kMessageAt;
  const size_t bytes = CutAt(status.message(), room - 1);
  std::memcpy(error->message, status.message().data(), bytes);
  error->message[bytes] = '\0';
  return error->code;
}

absl::Status NotNull(const void* pointer, absl::string_view argument) {
  if (pointer != nullptr) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("argument '", argument, "' is NULL"));
}

absl::Status CopyStruct(const void* given, absl::string_view name, void* defaults,
                        size_t known_bytes) {
  if (given == nullptr) return absl::OkStatus();
  uint32_t given_bytes = 0;
  std::memcpy(&given_bytes, given, sizeof(given_bytes));
  // No header has ever had a larger one: the size was not set.
  constexpr uint32_t kBytesMax = 4096;
  if (given_bytes < sizeof(given_bytes) || given_bytes > kBytesMax) {
    return absl::InvalidArgumentError(absl::StrCat(name, ".struct_size is ", given_bytes,
                                                   "; begin with the struct's _INIT macro"));
  }
  const char* bytes = static_cast<const char*>(given);
  for (size_t i = known_bytes; i < given_bytes; ++i) {
    if (bytes[i] == 0) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(name, " has fields that this library does not know (", COVEY_ABI_VERSION,
                     "): the library is older than the program; install a newer one"));
  }
  std::memcpy(defaults, given, std::min<size_t>(given_bytes, known_bytes));
  return absl::OkStatus();
}

absl::StatusOr<absl::Duration> WaitOf(double seconds) {
  if (std::isnan(seconds)) return NoNumber(seconds);
  return seconds < 0 ? absl::InfiniteDuration() : absl::Seconds(seconds);
}

absl::StatusOr<absl::Duration> DeadlineOf(double seconds) {
  if (std::isnan(seconds) || seconds < 0) return NoNumber(seconds);
  return absl::Seconds(seconds);
}

char* NewText(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

void FreeText(char* text) { std::free(text); }

absl::Status Creator::Check() const {
  if (is_this()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("process ", pid_, " has made this object, and process ", getpid(),
                   " is its child by fork; connect again in the child"));
}

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace covey::c
