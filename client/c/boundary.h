// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/c/covey.h"

// Everything that changes its form between C and C++: errors, options, times, texts.
namespace covey::c {

// Writes the status to `error`, which may be null, and returns its code.
covey_code Report(const absl::Status& status, covey_error* error);

// Runs the body of an exported function: no exception leaves it.
template <typename Body>
covey_code Guard(covey_error* error, const Body& body) noexcept {
  try {
    return Report(body(), error);
  } catch (const std::bad_alloc&) {
    return Report(absl::ResourceExhaustedError("out of memory; free some, then retry"), error);
  } catch (const std::exception& exception) {
    return Report(absl::InternalError(exception.what()), error);
  } catch (...) {
    return Report(absl::InternalError("unknown exception; report this as a bug"), error);
  }
}

// INVALID_ARGUMENT unless `pointer` is set.
absl::Status NotNull(const void* pointer, absl::string_view argument);

// Struct `given` with the fields that it lacks from `defaults`. Null = the defaults.
// INVALID_ARGUMENT: it has fields that this library does not know, and they are not zero.
absl::Status CopyStruct(const void* given, absl::string_view name, void* defaults,
                        size_t known_bytes);
template <typename T>
absl::StatusOr<T> OptionsOf(const T* given, absl::string_view name, T defaults) {
  static_assert(std::is_trivially_copyable_v<T>);
  const absl::Status copied = CopyStruct(given, name, &defaults, sizeof(T));
  if (!copied.ok()) return copied;
  return defaults;
}

// Calls `take` with each element of an array of sized structs; these stand as far apart as the
// program's header says. The first error, with what and which element it is.
template <typename T, typename Take>
absl::Status ForEachOf(const T* array, size_t count, absl::string_view what, const Take& take) {
  const char* next = reinterpret_cast<const char*>(array);
  for (size_t i = 0; i < count; ++i) {
    const T& element = *reinterpret_cast<const T*>(next);
    if (const absl::Status status = take(element); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat(what, " ", i, ": ", status.message()));
    }
    next += element.struct_size;
  }
  return absl::OkStatus();
}
// Writes as much of `result` as the program's header knows. Null: writes nothing.
template <typename T>
void Return(T result, T* out) {
  if (out == nullptr) return;
  result.struct_size = out->struct_size;
  std::memcpy(out, &result, std::min<size_t>(out->struct_size, sizeof(T)));
}

// Negative = infinite. INVALID_ARGUMENT: not a number.
absl::StatusOr<absl::Duration> WaitOf(double seconds);
// Zero = the default of the operation. INVALID_ARGUMENT: negative, or not a number.
absl::StatusOr<absl::Duration> DeadlineOf(double seconds);

// A copy that FreeText releases.
char* NewText(const std::string& text);
void FreeText(char* text);

// The process that has created an object; a fork copies the object, but not its threads.
class Creator {
 public:
  bool is_this() const { return pid_ == getpid(); }
  // FAILED_PRECONDITION: this process is another one.
  absl::Status Check() const;

 private:
  const pid_t pid_ = getpid();
};

// Threads that are started while it lives never handle signals of the program.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace covey::c
