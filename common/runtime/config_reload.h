// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/log.h"
#include "common/runtime/config_file.h"

namespace covey {

// The help of an option whose setting may change while the process runs.
std::string Reloads(absl::string_view help);

// Reads the settings of a running process again, at a SIGHUP: from the flags that it was started
// with, its environment, and the configuration file as it is then. It finds what has changed, and
// what of it may change now; the program applies that.
//
//   ConfigReload reload(options, {{"rate-max"}, {"priority", "low"}}, argc, argv);
//   …                                       // at each SIGHUP:
//   absl::Status status = reload.Read(read_options, next_options);
//   if (status.ok()) status = read.Validate();
//   if (status.ok()) status = ConfigReload::Together(next.Validate());
//   if (status.ok()) status = Apply(next);
//   reload.Finish(status, next.log_level);
//
// `read` is what a new process would start with, `next` what this one is to go on with: the values
// of `read` for what may change now, and those in use for the rest. Either may be refused.
//
// Actor-confined.
class ConfigReload {
 public:
  // A setting that may change while the process runs.
  struct Setting {
    absl::string_view name;
    // It may change to this value alone. Empty = to any.
    absl::string_view only_to = {};
  };

  // `started`: the options with which the process runs, loaded.
  ConfigReload(const ConfigFile& started, std::vector<Setting> reloadable, int argc,
               const char* const* argv);
  ConfigReload(const ConfigFile& started, std::vector<Setting> reloadable,
               std::vector<std::string> arguments, ConfigFile::Environment environment);

  // Both have the options of the constructor's, and fields of their own with their defaults.
  //   FAILED_PRECONDITION: there is no configuration file. INVALID_ARGUMENT: as ConfigFile::Load.
  absl::Status Read(ConfigFile& read, ConfigFile& next);

  // `status` of the validation of `next`, as it is told to users.
  static absl::Status Together(const absl::Status& status);

  // Logs what became of the reload. OK: a line for each setting that has changed, and for each that
  // needs a restart; the former are in use from now on, and so is `log_level`. Otherwise a line
  // with the reason, and everything stays as it was.
  void Finish(const absl::Status& status, LogLevel log_level);

 private:
  using Values = std::vector<std::pair<std::string, std::string>>;
  struct Change {
    std::string name;
    std::string before;
    std::string after;
    bool needs_restart = false;
  };

  bool has_file() const;
  bool MayChange(absl::string_view name, absl::string_view value) const;

  // Constant after construction.
  const std::vector<Setting> reloadable_;
  const std::vector<std::string> arguments_;
  const ConfigFile::Environment environment_;

  // Owned by the caller's thread.
  Values in_use_;
  std::vector<Change> changes_;  // found by the last Read
};

}  // namespace covey
