// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/forward_command.h"

#include <unistd.h>

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/chaos/forwarder.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kLookForSignal = absl::Milliseconds(200);

}  // namespace

int ForwardCommand(int count, const char* const* arguments) {
  std::vector<uint16_t> targets;
  for (int i = 1; i < count; ++i) {
    uint32_t port = 0;
    if (!absl::SimpleAtoi(arguments[i], &port) || port == 0 || port > 65535) {
      WriteAll(STDERR_FILENO, absl::StrCat("covey chaos forward: '", arguments[i],
                                           "' is not a port; give ports of this machine\n"));
      return kExitUsage;
    }
    targets.push_back(static_cast<uint16_t>(port));
  }
  absl::StatusOr<Forwarder> forwarder = Forwarder::Open(targets);
  if (!forwarder.ok()) {
    WriteAll(STDERR_FILENO,
             absl::StrCat("covey chaos forward: ", forwarder.status().message(), "\n"));
    return kExitFailed;
  }
  WriteAll(STDOUT_FILENO,
           absl::StrCat("forwards from ", absl::StrJoin(forwarder->ports(), " "), "\n"));
  while (!WaitForTermination(absl::ZeroDuration()).has_value()) forwarder->Step(kLookForSignal);
  return kExitOk;
}

}  // namespace covey::cli
