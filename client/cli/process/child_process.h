// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey::cli {

// A program to start, and its display name: "worker-3".
struct Program {
  std::string name;
  // The path first, resolved as a shell does.
  std::vector<std::string> arguments;
  // Added to the environment of this process, or replaces its variables; an empty value removes the
  // name.
  std::map<std::string, std::string> environment;
};

// How a process ended.
struct ChildExit {
  // Its exit code; meaningless after a signal.
  int code = 0;
  // The signal that killed it; 0 = it exited.
  int signal = 0;

  bool ok() const { return code == 0 && signal == 0; }
};

// "exited with code 1", "killed by signal 9 (Killed)".
std::string Describe(const ChildExit& exit);

// The path at which a shell would find `name`: itself when it has a slash, else in PATH. NOT_FOUND
// or FAILED_PRECONDITION (it exists, but is not an executable file): one line for humans.
absl::StatusOr<std::string> FindProgram(const std::string& name);

// One child in a process group of its own, with its output in two pipes. Nothing of it outlives
// this object or this process: the child dies with the thread that started it, and the remaining
// members of its process group are killed when it is reaped.
//
// Confined to the thread that started it. Only the destructor blocks, until a killed process has
// ended.
class ChildProcess {
 public:
  enum class Stream { kOutput, kError };

  // NOT_FOUND, PERMISSION_DENIED, …: the error of execve.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Program& program);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }
  bool running() const { return !exit_.has_value(); }

  // A descriptor to poll for reading; -1 once the stream has ended.
  int descriptor(Stream stream) const { return descriptors_[static_cast<size_t>(stream)]; }
  // The available output, at most 64 KiB; empty when there is none.
  std::string Read(Stream stream);
  // Closes both streams, which processes that inherited them may keep open.
  void CloseStreams();

  // Signals the whole process group. No effect once the child has ended.
  void Signal(int signal);
  // The child's exit, once it has ended; the same on every later call.
  std::optional<ChildExit> Reap();

 private:
  ChildProcess(std::string name, pid_t pid, std::array<int, 2> descriptors)
      : name_(std::move(name)), pid_(pid), descriptors_(descriptors) {}

  const std::string name_;
  const pid_t pid_;
  std::array<int, 2> descriptors_;
  std::optional<ChildExit> exit_;
};

}  // namespace covey::cli
