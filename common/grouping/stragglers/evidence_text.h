// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace covey {

// Numbers in the evidence for an action, for users. Pure.

// "4.2 ms".
std::string ShowTime(double seconds);
// "75 %" of 0.75.
std::string ShowPercent(double part);

}  // namespace covey
