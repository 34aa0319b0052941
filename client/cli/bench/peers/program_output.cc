// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/peers/program_output.h"

#include <poll.h>

#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/cli/process/child_process.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

using Stream = ChildProcess::Stream;

// A process that has closed its output ends soon after.
constexpr int kReapMilliseconds = 5;

std::string LastLine(absl::string_view text) {
  text = absl::StripAsciiWhitespace(text);
  const size_t line_break = text.rfind('\n');
  return std::string(line_break == absl::string_view::npos ? text : text.substr(line_break + 1));
}

}  // namespace

absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& arguments) {
  COVEY_ASSIGN_OR_RETURN(const std::unique_ptr<ChildProcess> process,
                         ChildProcess::Start({.name = arguments[0], .arguments = arguments}));
  std::string output, errors;
  while (process->descriptor(Stream::kOutput) >= 0 || process->descriptor(Stream::kError) >= 0) {
    pollfd polled[] = {{.fd = process->descriptor(Stream::kOutput), .events = POLLIN, .revents = 0},
                       {.fd = process->descriptor(Stream::kError), .events = POLLIN, .revents = 0}};
    poll(polled, 2, -1);
    if (polled[0].revents != 0) output += process->Read(Stream::kOutput);
    if (polled[1].revents != 0) errors += process->Read(Stream::kError);
  }
  std::optional<ChildExit> exit;
  while (!(exit = process->Reap()).has_value()) poll(nullptr, 0, kReapMilliseconds);
  if (exit->ok()) return output;
  return absl::AbortedError(
      absl::StrCat(arguments[0], " ", Describe(*exit), ": ", LastLine(errors)));
}

}  // namespace covey::cli
