// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/plan/binaries.h"

#include <unistd.h>

#include <climits>

#include "absl/strings/str_cat.h"
#include "client/cli/process/child_process.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

// Installed programs that only this one starts are in libexec. `built_in`: the folder in a built
// source tree.
absl::StatusOr<std::string> FindBinary(const std::string& given, const char* built_in,
                                       const std::string& name, const char* flag) {
  if (!given.empty()) return FindProgram(given);
  const std::string path = OwnPath();
  const std::string folder = path.substr(0, path.rfind('/'));
  for (const std::string& candidate :
       {absl::StrCat(folder, "/", name), absl::StrCat(folder, "/../libexec/covey/", name),
        absl::StrCat(folder, "/../../", built_in, "/", name)}) {
    if (FindProgram(candidate).ok()) return candidate;
  }
  return absl::NotFoundError(absl::StrCat("no ", name, " beside ", path, "; build //", built_in,
                                          ":", name, ", or give its path with ", flag));
}

}  // namespace

std::string OwnPath() {
  char self[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", self, sizeof(self));
  return std::string(self, size > 0 ? static_cast<size_t>(size) : 0);
}

absl::StatusOr<LocalPaths> FindBinaries(const RunOptions& options) {
  LocalPaths paths;
  COVEY_ASSIGN_OR_RETURN(
      paths.scheduler_binary,
      FindBinary(options.scheduler_binary, "scheduler", "covey_scheduler", "--scheduler-binary"));
  COVEY_ASSIGN_OR_RETURN(paths.server_binary, FindBinary(options.server_binary, "server",
                                                         "covey_server", "--server-binary"));
  return paths;
}

absl::StatusOr<std::string> FindSynthetic(const std::string& given) {
  return FindBinary(given, "worker/examples/synthetic", "synthetic", "--worker-binary");
}

}  // namespace covey::cli
