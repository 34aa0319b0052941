// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/log_level.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/runtime/config_file.h"
#include "common/runtime/config_reload.h"

namespace covey {

void AddLogLevel(ConfigFile& options, LogLevel* field) {
  options.Add(
      "log-level",
      [field](absl::string_view text) {
        for (const LogLevel level : kLogLevels) {
          if (text != LogLevelName(level)) continue;
          *field = level;
          return absl::OkStatus();
        }
        return absl::InvalidArgumentError("neither debug, info, warning nor error");
      },
      [field] { return std::string(LogLevelName(*field)); },
      Reloads("lowest level of what is logged: debug, info, warning or error"));
}

}  // namespace covey
