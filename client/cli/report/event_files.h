// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/report/run_history.h"

namespace covey::cli {

// The curves of a run as event files for TensorBoard, which may be read while the run goes on. Each
// group of workers has a file of its own, "FOLDER/group-N/events.out.tfevents.TIME.HOST.PID", whose
// points count by the group's steps; so TensorBoard draws the groups as curves of one plot.
//
// Confined to one thread. Blocks for as long as the disk takes.
class EventFiles {
 public:
  // `started`: the wall time at which the seconds of the history begin. Writes nothing yet.
  EventFiles(std::string folder, absl::Time started)
      : folder_(std::move(folder)), started_(started) {}

  // Writes the newest point of each group, unless it has been written. The folders are made when
  // they are needed. Errors name the path; the files are as a reader expects them, up to an
  // incomplete last record, and nothing more should be written.
  absl::Status Write(const RunHistory& history);

 private:
  struct File {
    std::string path;
    // Of the newest point that was written.
    uint64_t step = 0;
  };

  // Makes the file of a group that has none.
  absl::Status Begin(uint32_t group, File& file);

  const std::string folder_;
  const absl::Time started_;
  std::map<uint32_t, File> files_;  // by group
};

}  // namespace covey::cli
