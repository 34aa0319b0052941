// SPDX-License-Identifier: Apache-2.0
#include "client/cli/process/signal_descriptor.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/base/check.h"

namespace covey::cli {
namespace {

int Open(std::initializer_list<int> signals) {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : signals) sigaddset(&handled, signal);
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  const int descriptor = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  COVEY_CHECK(descriptor >= 0);
  return descriptor;
}

}  // namespace

SignalDescriptor::SignalDescriptor(std::initializer_list<int> signals)
    : descriptor_(Open(signals)) {}

SignalDescriptor::~SignalDescriptor() { close(descriptor_); }

std::optional<int> SignalDescriptor::Take() {
  signalfd_siginfo info;
  if (read(descriptor_, &info, sizeof(info)) != sizeof(info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

}  // namespace covey::cli
