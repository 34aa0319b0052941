// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace covey::cli {

// Numbers for humans. Pure.

// "1,234,567".
std::string ShowCount(uint64_t value);
// "512 B", "1.5 MiB".
std::string ShowBytes(uint64_t bytes);
// Three significant digits: "0.0312", "4.5", "12,300"; "nan" and "inf" as they are.
std::string ShowNumber(double value);
// "0.4 s", "75 s", "2 h 5 min".
std::string ShowSeconds(double seconds);

}  // namespace covey::cli
