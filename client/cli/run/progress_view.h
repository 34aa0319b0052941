// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// The progress display of `covey run`. Pure.

// For a terminal: one line per group, with aligned columns; before there are groups, one line that
// says what the cluster waits for. At most `lines_max` lines.
std::vector<std::string> ProgressBlock(const proto::StatusReply& status, absl::Duration elapsed,
                                       size_t lines_max);

// For a pipe or a file: everything in one line.
std::string ProgressLine(const proto::StatusReply& status, absl::Duration elapsed);

}  // namespace covey::cli
