// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <memory>

#include "common/base/json_escape.h"

namespace covey {
namespace {

struct Logger {
  std::shared_ptr<spdlog::logger> sink;
  std::string node;
  bool json = false;
};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::err;
}

Logger MakeLogger(LogLevel minimum, LogFormat format, absl::string_view node) {
  Logger logger;
  logger.json =
      format == LogFormat::kJson || (format == LogFormat::kAuto && !isatty(STDERR_FILENO));
  logger.node = std::string(node);
  logger.sink = std::make_shared<spdlog::logger>(
      "covey", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger.sink->set_level(ToSpdlog(minimum));
  logger.sink->set_pattern(logger.json ? R"({"time":"%Y-%m-%dT%H:%M:%S.%f%z","level":"%l",%v})"
                                       : "%H:%M:%S.%e %^%L%$ %v");
  return logger;
}

// Leaked on purpose: other threads may log while main returns.
Logger& Global() {
  static Logger& logger = *new Logger(MakeLogger(LogLevel::kInfo, LogFormat::kAuto, ""));
  return logger;
}

}  // namespace

void ConfigureLog(LogLevel minimum, LogFormat format, absl::string_view node) {
  Global() = MakeLogger(minimum, format, node);
}

void LogLine(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) {
  const Logger& logger = Global();
  if (!logger.sink->should_log(ToSpdlog(level))) return;
  std::string line;
  if (logger.json) {
    line = absl::StrCat("\"event\":\"", JsonEscape(event), "\"");
    if (!logger.node.empty()) absl::StrAppend(&line, ",\"node\":\"", JsonEscape(logger.node), "\"");
    for (const LogField& field : fields) {
      absl::StrAppend(&line, ",\"", JsonEscape(field.key()), "\":\"", JsonEscape(field.value()),
                      "\"");
    }
  } else {
    if (!logger.node.empty()) line = absl::StrCat(logger.node, " ");
    absl::StrAppend(&line, event);
    for (const LogField& field : fields) {
      absl::StrAppend(&line, " ", field.key(), "=", field.value());
    }
  }
  logger.sink->log(ToSpdlog(level), line);
}

}  // namespace covey
