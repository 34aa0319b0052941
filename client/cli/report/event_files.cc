// SPDX-License-Identifier: Apache-2.0
#include "client/cli/report/event_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/cli/console/text_file.h"
#include "common/base/status_macros.h"
#include "common/format/event_record.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

// `flags`: O_CREAT, or 0 for a file that exists.
absl::Status Append(const std::string& path, int flags, absl::string_view bytes) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0666);
  const bool written = descriptor >= 0 && WriteAll(descriptor, bytes);
  const absl::Status status = written ? absl::OkStatus() : absl::ErrnoToStatus(errno, path);
  if (descriptor >= 0) close(descriptor);
  return status;
}

std::string RecordOf(const HistoryPoint& point, absl::Time started) {
  const EventScalar scalars[] = {
      {"loss", point.loss},
      {"samples", static_cast<double>(point.samples)},
      {"samples_per_second", point.samples_per_second},
      {"staleness", point.staleness},
      {"step", static_cast<double>(point.step)},
      {"steps_aside", static_cast<double>(point.steps_aside)},
      {"seconds_per_step/compute", point.compute_seconds},
      {"seconds_per_step/wait", point.wait_seconds},
  };
  return ScalarsRecord(started + absl::Seconds(point.seconds), point.step, scalars);
}

}  // namespace

absl::Status EventFiles::Begin(uint32_t group, File& file) {
  const std::string folder = absl::StrCat(folder_, "/group-", group);
  COVEY_RETURN_IF_ERROR(MakeFolder(folder));
  file.path = absl::StrCat(folder, "/events.out.tfevents.", absl::ToUnixSeconds(started_), ".",
                           HostName(), ".", getpid());
  return Append(file.path, O_CREAT, EventFileStart(started_));
}

absl::Status EventFiles::Write(const RunHistory& history) {
  for (const GroupHistory& group : history.groups()) {
    if (group.points.empty()) continue;
    const HistoryPoint& newest = group.points.back();
    File& file = files_[group.group];
    if (newest.step <= file.step) continue;
    if (file.path.empty()) COVEY_RETURN_IF_ERROR(Begin(group.group, file));
    COVEY_RETURN_IF_ERROR(Append(file.path, 0, RecordOf(newest, started_)));
    file.step = newest.step;
  }
  return absl::OkStatus();
}

}  // namespace covey::cli
