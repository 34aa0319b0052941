// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace covey {

// One event per line on standard error: `event key=value …`. Plain text on a terminal, otherwise
// one JSON object per line; COVEY_LOG_FORMAT, read in main, overrides this. A thin wrapper over
// spdlog. Never log tensor content or secrets. Thread-safe.

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kAuto, kHuman, kJson };

// One `key=value`. Values are anything StrCat takes.
class LogField {
 public:
  LogField(absl::string_view key, const absl::AlphaNum& value) : key_(key), value_(value.Piece()) {}

  const std::string& key() const { return key_; }
  const std::string& value() const { return value_; }

 private:
  std::string key_;
  std::string value_;
};

void LogLine(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields = {});

// To be called once, early in main. Every line contains `node` ("server-1"), unless it is empty.
void ConfigureLog(LogLevel minimum, LogFormat format, absl::string_view node);

inline void LogInfo(absl::string_view event, std::initializer_list<LogField> fields = {}) {
  LogLine(LogLevel::kInfo, event, fields);
}
inline void LogWarning(absl::string_view event, std::initializer_list<LogField> fields = {}) {
  LogLine(LogLevel::kWarning, event, fields);
}
inline void LogError(absl::string_view event, std::initializer_list<LogField> fields = {}) {
  LogLine(LogLevel::kError, event, fields);
}

}  // namespace covey
