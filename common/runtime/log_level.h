// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/log.h"

namespace covey {

class ConfigFile;

// Makes the lowest level of what is logged the option --log-level, COVEY_LOG_LEVEL or `log_level`
// of a program. `field` outlives `options`.
void AddLogLevel(ConfigFile& options, LogLevel* field);

}  // namespace covey
