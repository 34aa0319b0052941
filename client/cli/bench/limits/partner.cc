// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/limits/partner.h"

#include <poll.h>
#include <unistd.h>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/console/text_file.h"
#include "client/cli/run/plan/binaries.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

constexpr int kStartMilliseconds = 10000;

absl::StatusOr<std::string> FirstLine(ChildProcess& process) {
  std::string line;
  while (!absl::StrContains(line, '\n')) {
    pollfd output = {.fd = process.descriptor(ChildProcess::Stream::kOutput), .events = POLLIN};
    if (output.fd < 0 || poll(&output, 1, kStartMilliseconds) != 1) {
      return absl::UnavailableError(absl::StrCat(
          process.name(), " did not start: ", process.Read(ChildProcess::Stream::kError)));
    }
    line += process.Read(ChildProcess::Stream::kOutput);
  }
  return line.substr(0, line.find('\n'));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Partner>> Partner::Start(const std::string& spec) {
  COVEY_ASSIGN_OR_RETURN(
      std::unique_ptr<ChildProcess> process,
      ChildProcess::Start({.name = absl::StrCat("the partner of the limit '", spec, "'"),
                           .arguments = {OwnPath(), "bench", "--limit-partner", spec}}));
  COVEY_ASSIGN_OR_RETURN(std::string address, FirstLine(*process));
  return absl::WrapUnique(new Partner(std::move(process), std::move(address)));
}

absl::Status PrintAddress(const std::string& address) {
  return WriteAll(STDOUT_FILENO, address + "\n")
             ? absl::OkStatus()
             : absl::UnavailableError("cannot write the address of a limit's partner");
}

}  // namespace covey::cli
