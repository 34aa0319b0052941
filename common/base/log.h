// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cmath>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace covey {

// One event per line on standard error: `event key=value …`. Plain text on a terminal, otherwise
// one JSON object per line; COVEY_LOG_FORMAT, read in main, overrides this. A thin wrapper over
// spdlog. Never log tensor content or secrets. Thread-safe.
//
// A JSON line is valid UTF-8 and has each key once, whatever bytes are logged: `time`, `level`,
// `event`, `node` if the process has a name, and the fields. Values are strings, numbers, true or
// false; a number that JSON does not have (NaN, infinity) is a string.

enum class LogLevel { kDebug, kInfo, kWarning, kError };
inline constexpr std::array kLogLevels = {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning,
                                          LogLevel::kError};
// "debug", "info", "warning" or "error".
const char* LogLevelName(LogLevel level);
enum class LogFormat { kAuto, kHuman, kJson };

// One `key=value`. Values are anything StrCat takes.
class LogField {
 public:
  LogField(absl::string_view key, const absl::AlphaNum& value) : key_(key), value_(value.Piece()) {}
  template <typename T>
  requires std::is_arithmetic_v<T> LogField(absl::string_view key, T value) : key_(key) {
    if constexpr (std::is_same_v<T, bool>) {
      value_ = value ? "true" : "false";
      is_literal_ = true;
    } else {
      value_ = absl::StrCat(value);
      is_literal_ = std::is_integral_v<T> || std::isfinite(static_cast<double>(value));
    }
  }

  const std::string& key() const { return key_; }
  const std::string& value() const { return value_; }
  // The value is a number or a boolean of JSON.
  bool is_literal() const { return is_literal_; }

 private:
  std::string key_;
  std::string value_;
  bool is_literal_ = false;
};

void LogLine(LogLevel level, absl::string_view event, std::initializer_list<LogField> fields = {});

// To be called once, early in main. Every line contains `node` ("server-1"), unless it is empty.
void ConfigureLog(LogLevel minimum, LogFormat format, absl::string_view node);
// Lines below `minimum` are left out from now on.
void SetLogLevel(LogLevel minimum);
// Whether lines of this level are not left out.
bool IsLogged(LogLevel level);

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
