// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// What `covey run` shows while it runs. Pure.

// For a terminal: one line per group, columns aligned; before there are groups, one line with what
// the cluster waits for. At most `lines_max` lines.
std::vector<std::string> ProgressBlock(const proto::StatusReply& status, absl::Duration elapsed,
                                       size_t lines_max);

// For a pipe or a file: everything in one line.
std::string ProgressLine(const proto::StatusReply& status, absl::Duration elapsed);

}  // namespace covey::cli
