// SPDX-License-Identifier: Apache-2.0
#include "common/base/check.h"

#include <cstdlib>

#include "common/base/log.h"

namespace covey {

void CheckFailed(const char* file, int line, const char* condition) {
  LogLine(LogLevel::kError, "check_failed", {{"where", file}, {"line", line}, {"what", condition}});
  std::abort();
}

}  // namespace covey
