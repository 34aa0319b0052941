// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey::cli {

// What to start, and what people call it: "worker-3".
struct Program {
  std::string name;
  // The path first, found as a shell finds it.
  std::vector<std::string> arguments;
  // Added to the environment of this process, or in place of what stands there; an empty value
  // takes the name away.
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

// Where a shell would find `name`: itself when it holds a slash, else in PATH.
// NOT_FOUND or FAILED_PRECONDITION (there, but not an executable file): one line for people.
absl::StatusOr<std::string> FindProgram(const std::string& name);

// One child in a process group of its own, its output in two pipes. Nothing of it outlives this
// object or this process: the child dies with the thread that started it, and whatever the child
// left in its process group is killed when it is reaped.
//
// Confined to the thread that started it. Nothing here blocks, except destruction for as long as a
// killed process takes to go.
class ChildProcess {
 public:
  enum class Stream { kOutput, kError };

  // NOT_FOUND, PERMISSION_DENIED, …: what execve said.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(const Program& program);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  const std::string& name() const { return name_; }
  pid_t pid() const { return pid_; }
  bool running() const { return !exit_.has_value(); }

  // To poll for reading; -1 once the stream has ended.
  int descriptor(Stream stream) const { return descriptors_[static_cast<size_t>(stream)]; }
  // What is there now, at most 64 KiB; empty when nothing is.
  std::string Read(Stream stream);
  // Closes both streams, for what inherited them and lives on.
  void CloseStreams();

  // To the whole process group. Without effect once it has ended.
  void Signal(int signal);
  // How it ended, once it has; then always the same.
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
