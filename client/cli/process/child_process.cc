// SPDX-License-Identifier: Apache-2.0
#include "client/cli/process/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

constexpr size_t kReadBytesMax = 64 << 10;

// A pipe whose ends no other program inherits.
struct Pipe {
  int read = -1;
  int write = -1;

  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    if (read >= 0) close(read);
    if (write >= 0) close(write);
  }

  absl::Status Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "making a pipe");
    read = ends[0];
    write = ends[1];
    return absl::OkStatus();
  }
};

// Each as "NAME=value".
std::vector<std::string> MergedEnvironment(const std::map<std::string, std::string>& added) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(*entry, absl::MaxSplits('=', 1));
    if (!added.contains(parts.first)) merged.emplace_back(*entry);
  }
  for (const auto& [name, value] : added) {
    if (!value.empty()) merged.push_back(absl::StrCat(name, "=", value));
  }
  return merged;
}

std::vector<char*> NullTerminated(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Runs after fork, in the child: only calls that are safe in a copy of a process with several
// threads.
[[noreturn]] void BecomeProgram(const char* path, char* const* arguments, char* const* environment,
                                pid_t parent, int output, int error, int failure) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // The parent died before the request to die with it.

  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);

  const int nowhere = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (dup2(nowhere, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
      dup2(error, STDERR_FILENO) >= 0) {
    execve(path, arguments, environment);
  }
  const int reason = errno;
  if (write(failure, &reason, sizeof(reason)) < 0) _exit(126);
  _exit(127);
}

// Whether a shell could execute it.
absl::Status CheckExecutable(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot run ", path, ": ", strerror(errno), "; check the path"));
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is not a file; name a program"));
  }
  if (access(path.c_str(), X_OK) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not executable; try chmod +x on it, or name its interpreter"));
  }
  return absl::OkStatus();
}

std::string SearchPath() {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    absl::string_view text = *entry;
    if (absl::ConsumePrefix(&text, "PATH=")) return std::string(text);
  }
  return "/usr/local/bin:/usr/bin:/bin";
}

}  // namespace

std::string Describe(const ChildExit& exit) {
  if (exit.signal == 0) return absl::StrCat("exited with code ", exit.code);
  return absl::StrCat("killed by signal ", exit.signal, " (", strsignal(exit.signal), ")");
}

absl::StatusOr<std::string> FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) {
    COVEY_RETURN_IF_ERROR(CheckExecutable(name));
    return name;
  }
  if (!name.empty()) {
    for (absl::string_view folder : absl::StrSplit(SearchPath(), ':', absl::SkipEmpty())) {
      std::string path = absl::StrCat(folder, "/", name);
      if (CheckExecutable(path).ok()) return path;
    }
  }
  return absl::NotFoundError(
      absl::StrCat("no program '", name, "' in PATH; give its path, as in ./", name));
}

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(const Program& program) {
  COVEY_CHECK(!program.arguments.empty());
  COVEY_ASSIGN_OR_RETURN(const std::string path, FindProgram(program.arguments[0]));
  std::vector<std::string> arguments = program.arguments;
  std::vector<std::string> environment = MergedEnvironment(program.environment);
  const std::vector<char*> argument_pointers = NullTerminated(arguments);
  const std::vector<char*> environment_pointers = NullTerminated(environment);

  Pipe output, error, failure;
  COVEY_RETURN_IF_ERROR(output.Open());
  COVEY_RETURN_IF_ERROR(error.Open());
  COVEY_RETURN_IF_ERROR(failure.Open());
  fcntl(output.read, F_SETFL, O_NONBLOCK);
  fcntl(error.read, F_SETFL, O_NONBLOCK);

  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return absl::ErrnoToStatus(errno, absl::StrCat("starting ", program.name));
  if (pid == 0) {
    BecomeProgram(path.c_str(), argument_pointers.data(), environment_pointers.data(), parent,
                  output.write, error.write, failure.write);
  }
  setpgid(pid, pid);  // Also here, so that it holds before any signal is sent to the group.

  close(std::exchange(failure.write, -1));
  int reason = 0;
  ssize_t count;
  do {
    count = read(failure.read, &reason, sizeof(reason));
  } while (count < 0 && errno == EINTR);
  if (count == sizeof(reason)) {
    waitpid(pid, nullptr, 0);
    return absl::ErrnoToStatus(reason, absl::StrCat("starting ", path));
  }
  const std::array<int, 2> descriptors = {std::exchange(output.read, -1),
                                          std::exchange(error.read, -1)};
  return absl::WrapUnique(new ChildProcess(program.name, pid, descriptors));
}

ChildProcess::~ChildProcess() {
  while (running()) {
    Signal(SIGKILL);
    siginfo_t info;
    waitid(P_PID, pid_, &info, WEXITED | WNOWAIT);
    Reap();
  }
  CloseStreams();
}

std::string ChildProcess::Read(Stream stream) {
  int& descriptor = descriptors_[static_cast<size_t>(stream)];
  if (descriptor < 0) return "";
  std::string bytes(kReadBytesMax, '\0');
  ssize_t count;
  do {
    count = read(descriptor, bytes.data(), bytes.size());
  } while (count < 0 && errno == EINTR);
  const bool ended = count == 0 || (count < 0 && errno != EAGAIN);
  if (ended) close(std::exchange(descriptor, -1));
  bytes.resize(count > 0 ? count : 0);
  return bytes;
}

void ChildProcess::CloseStreams() {
  for (int& descriptor : descriptors_) {
    if (descriptor >= 0) close(std::exchange(descriptor, -1));
  }
}

void ChildProcess::Signal(int signal) {
  if (running()) kill(-pid_, signal);
}

std::optional<ChildExit> ChildProcess::Reap() {
  if (exit_) return exit_;
  siginfo_t info = {};
  if (waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    return std::nullopt;
  }
  // Until it is reaped its id is not reused, so this reaches only the processes that it left
  // behind.
  kill(-pid_, SIGKILL);
  waitid(P_PID, pid_, &info, WEXITED);
  exit_ = info.si_code == CLD_EXITED ? ChildExit{.code = info.si_status}
                                     : ChildExit{.signal = info.si_status};
  return exit_;
}

}  // namespace covey::cli
