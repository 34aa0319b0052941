// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/process_main.h"

#include <google/protobuf/stubs/logging.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/log.h"

namespace covey {
namespace {

// The largest value that glibc accepts. Frames are smaller; only tables that are one large shard
// are not.
constexpr int kMapBytes = 32 << 20;
constexpr int kTrimBytes = 1 << 30;
// Free memory of one arena is useless to another, and threads of one arena wait for each other.
constexpr int kArenas = 8;

absl::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? absl::string_view() : absl::string_view(value);
}

void InitLog(absl::string_view name) {
  const absl::string_view format = Environment("COVEY_LOG_FORMAT");
  const absl::string_view level = Environment("COVEY_LOG_LEVEL");
  ConfigureLog(level == "debug"     ? LogLevel::kDebug
               : level == "warning" ? LogLevel::kWarning
               : level == "error"   ? LogLevel::kError
                                    : LogLevel::kInfo,
               format == "human"  ? LogFormat::kHuman
               : format == "json" ? LogFormat::kJson
                                  : LogFormat::kAuto,
               name);
  google::protobuf::SetLogHandler(nullptr);
}

sigset_t TerminationSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// `on_hangup`: null = SIGHUP is not waited for.
std::optional<int> AwaitTermination(absl::Duration timeout,
                                    const std::function<void()>* on_hangup) {
  const sigset_t ends = TerminationSignals();
  sigset_t signals = ends;
  if (on_hangup != nullptr) sigaddset(&signals, SIGHUP);
  const absl::Time until = MonotonicNow() + timeout;
  while (true) {
    const timespec left = absl::ToTimespec(std::max(absl::ZeroDuration(), until - MonotonicNow()));
    const int number = timeout == absl::InfiniteDuration() ? sigwaitinfo(&signals, nullptr)
                                                           : sigtimedwait(&signals, nullptr, &left);
    if (number == SIGHUP) {
      (*on_hangup)();
    } else if (number >= 0) {
      sigset_t kills;
      sigemptyset(&kills);
      sigaddset(&kills, SIGINT);
      pthread_sigmask(SIG_UNBLOCK, &kills, nullptr);
      return number;
    } else if (errno != EINTR) {
      return std::nullopt;
    }
  }
}

}  // namespace

void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, kMapBytes);
  mallopt(M_TRIM_THRESHOLD, kTrimBytes);
  mallopt(M_ARENA_MAX, kArenas);
}

void InitProcess(absl::string_view name) {
  KeepFreedMemory();
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  InitLog(name);
  signal(SIGPIPE, SIG_IGN);
  const sigset_t signals = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

uint32_t UsableCores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) return 1;
  return static_cast<uint32_t>(std::max(1, CPU_COUNT(&cores)));
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::optional<int> WaitForTermination(absl::Duration timeout) {
  return AwaitTermination(timeout, nullptr);
}

void HoldHangups() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

std::optional<int> WaitForTermination(absl::Duration timeout,
                                      const std::function<void()>& on_hangup) {
  return AwaitTermination(timeout, &on_hangup);
}

void RequestTermination() { kill(getpid(), SIGTERM); }

}  // namespace covey
