// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc_log.h"

#include <grpc/support/log.h>

#include "absl/strings/match.h"
#include "common/base/log.h"

namespace covey {
namespace {

void Take(gpr_log_func_args* line) {
  if (line->severity != GPR_LOG_SEVERITY_ERROR) return;
  const bool last_words = absl::StrContains(line->message, "assertion failed");
  LogLine(last_words ? LogLevel::kError : LogLevel::kDebug, "grpc",
          {{"file", line->file}, {"line", line->line}, {"text", line->message}});
}

}  // namespace

void TakeLogOfGrpc() { gpr_set_log_function(Take); }

}  // namespace covey
