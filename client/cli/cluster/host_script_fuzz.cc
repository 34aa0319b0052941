// SPDX-License-Identifier: Apache-2.0
// What the hosts of `covey cluster` print.
#include "client/cli/cluster/host_script.h"

#include <string>

#include "absl/strings/match.h"
#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {

std::vector<std::string> FuzzSeeds() {
  return {"motd\ncovey server-0 running 4711\ncovey server-0 log a line\n",
          "covey worker-1 ended\ncovey x refused /bin/sh is none\ncovey worker-2 started 12\n"};
}

bool FuzzOne(std::span<const uint8_t> input) {
  const cli::HostReport report = cli::ReadHostReport(FuzzText(input));
  for (const auto& [name, process] : report.processes) {
    COVEY_CHECK(!absl::StrContains(name, ' ') && !absl::StrContains(name, '\n'));
  }
  cli::LogHead(FuzzText(input));
  return !report.processes.empty();
}

}  // namespace covey
