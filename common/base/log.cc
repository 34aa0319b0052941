// SPDX-License-Identifier: Apache-2.0
#include "common/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
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

// What follows the time and the level.
std::string JsonMembers(const Logger& logger, absl::string_view event,
                        std::initializer_list<LogField> fields) {
  std::vector<std::string> keys = {"time", "level", "event", "node"};
  std::string members = absl::StrCat("\"event\":\"", JsonEscape(event), "\"");
  if (!logger.node.empty()) {
    absl::StrAppend(&members, ",\"node\":\"", JsonEscape(logger.node), "\"");
  }
  for (const LogField& field : fields) {
    std::string key = JsonEscape(field.key());
    while (std::find(keys.begin(), keys.end(), key) != keys.end()) key += '_';
    const absl::string_view quote = field.is_literal() ? "" : "\"";
    absl::StrAppend(&members, ",\"", key, "\":", quote, JsonEscape(field.value()), quote);
    keys.push_back(std::move(key));
  }
  return members;
}

// Whether a terminal may take a character for a command: C0 and C1 controls, and delete.
bool HasControls(absl::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<uint8_t>(text[i]);
    if (c < 0x20 || c == 0x7F) return true;
    if (c == 0xC2 && i + 1 < text.size() && static_cast<uint8_t>(text[i + 1]) < 0xA0) return true;
  }
  return false;
}

// Text may come from a peer, a file name or a command line. One that could make a second line, or
// change the terminal, is escaped as in C; all others stay as they are.
std::string TextValue(absl::string_view text) {
  return HasControls(text) ? absl::CHexEscape(text) : std::string(text);
}

// What follows the time and the level.
std::string TextMembers(const Logger& logger, absl::string_view event,
                        std::initializer_list<LogField> fields) {
  std::string line = logger.node.empty() ? "" : absl::StrCat(TextValue(logger.node), " ");
  absl::StrAppend(&line, TextValue(event));
  for (const LogField& field : fields) {
    absl::StrAppend(&line, " ", TextValue(field.key()), "=", TextValue(field.value()));
  }
  return line;
}

// Leaked on purpose: other threads may log while main returns.
Logger& Global() {
  static Logger& logger = *new Logger(MakeLogger(LogLevel::kInfo, LogFormat::kAuto, ""));
  return logger;
}

}  // namespace

const char* LogLevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

void ConfigureLog(LogLevel minimum, LogFormat format, absl::string_view node) {
  Global() = MakeLogger(minimum, format, node);
}

void SetLogLevel(LogLevel minimum) { Global().sink->set_level(ToSpdlog(minimum)); }

bool IsLogged(LogLevel level) { return Global().sink->should_log(ToSpdlog(level)); }

void LogLine(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields) {
  const Logger& logger = Global();
  if (!logger.sink->should_log(ToSpdlog(level))) return;
  logger.sink->log(ToSpdlog(level), logger.json ? JsonMembers(logger, event, fields)
                                                : TextMembers(logger, event, fields));
}

}  // namespace covey
