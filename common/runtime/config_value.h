// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey {

// The text forms of configuration values. Pure.

// Stores the value. INVALID_ARGUMENT: says what `text` is not; the field is then unspecified.
absl::Status ReadValue(absl::string_view text, std::string* field);
absl::Status ReadValue(absl::string_view text, bool* field);
absl::Status ReadValue(absl::string_view text, int32_t* field);
absl::Status ReadValue(absl::string_view text, uint32_t* field);
absl::Status ReadValue(absl::string_view text, uint64_t* field);
absl::Status ReadValue(absl::string_view text, double* field);
absl::Status ReadValue(absl::string_view text, absl::Duration* field);
absl::Status ReadValue(absl::string_view text, std::vector<std::string>* field);

// In a form that ReadValue takes.
std::string WriteValue(const std::string& value);
std::string WriteValue(bool value);
std::string WriteValue(int32_t value);
std::string WriteValue(uint32_t value);
std::string WriteValue(uint64_t value);
std::string WriteValue(double value);
std::string WriteValue(absl::Duration value);
std::string WriteValue(const std::vector<std::string>& value);

// "256MiB", "1KB", "64" (bytes) -> bytes. INVALID_ARGUMENT: not a size, or 2^64 and more.
absl::StatusOr<uint64_t> ParseBytes(absl::string_view text);
// The shortest exact form: "256MiB", "1000".
std::string FormatBytes(uint64_t bytes);

// The environment variable of an option: "data-loops" -> "COVEY_DATA_LOOPS".
std::string EnvironmentVariableOf(absl::string_view name);

// The element of `known` with the smallest edit distance to `name`; the first of several.
// Precondition: `known` is not empty.
std::string NearestName(absl::string_view name, const std::vector<std::string>& known);

}  // namespace covey
