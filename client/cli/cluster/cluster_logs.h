// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "client/cli/cluster/cluster_file.h"
#include "client/cli/cluster/host_script.h"

namespace covey::cli {

// Prints the logs of processes on standard output, each line behind the name of its process, and
// the host's errors on standard error. `names`: none = all. Blocks, when it follows until a signal
// comes. NOT_FOUND: no process has this name; UNAVAILABLE: a host is not reached.
absl::Status PrintLogs(const ClusterFile& file, const std::vector<std::string>& names,
                       const LogsOrder& order);

// Whose a line is, in the output of LogsScript of one host. A value, pure.
class LogLines {
 public:
  explicit LogLines(std::set<std::string> names) : names_(std::move(names)) {}

  // The lines to print now, each with the name of its process. `tail` puts an empty line in front
  // of a head, so an empty line waits for the next one.
  std::vector<std::pair<std::string, std::string>> Take(absl::string_view line);

 private:
  const std::set<std::string> names_;
  std::string name_;
  bool has_empty_ = false;
};

}  // namespace covey::cli
