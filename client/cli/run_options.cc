#include "client/cli/run_options.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey::cli {
namespace {

// All on one machine; more than this is a typing error.
constexpr uint32_t kProcessesMax = 256;
constexpr uint32_t kServerLoopsMax = 64;

absl::Status InRange(absl::string_view flag, uint32_t value, uint32_t low, uint32_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(flag, " is ", value, "; choose ", low, " to ", high));
}

}  // namespace

absl::Status RunOptions::Validate() const {
  COVEY_RETURN_IF_ERROR(InRange("--servers", servers, 1, kProcessesMax));
  COVEY_RETURN_IF_ERROR(InRange("--groups", groups, 1, kProcessesMax));
  COVEY_RETURN_IF_ERROR(InRange("--workers", workers_per_group, 1, kProcessesMax));
  if (workers() > kProcessesMax) {
    return absl::InvalidArgumentError(absl::StrCat("--groups ", groups, " of --workers ",
                                                   workers_per_group, " are ", workers(),
                                                   " processes; choose at most ", kProcessesMax));
  }
  COVEY_RETURN_IF_ERROR(InRange("--server-loops", server_loops, 0, kServerLoopsMax));
  if (transport != "tcp" && transport != "ipc") {
    return absl::InvalidArgumentError(
        absl::StrCat("--transport is '", transport, "'; choose tcp or ipc"));
  }
  if (job.empty() || job.size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--job has ", job.size(), " bytes; choose 1 to ", kNameBytesMax));
  }
  if (timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("--timeout must be longer than nothing");
  }
  if (grace < absl::Milliseconds(100) || grace > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--grace is ", absl::FormatDuration(grace), "; choose 100ms to 1h"));
  }
  if (program.empty()) {
    return absl::InvalidArgumentError("what shall the workers run? end with: -- PROGRAM ARGUMENTS");
  }
  return absl::OkStatus();
}

}  // namespace covey::cli
