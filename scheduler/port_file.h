// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace covey::scheduler {

// Tells the parent process on which port this process listens: the file appears with the port and a
// newline, never half written. UNAVAILABLE: the operating system refuses; the message says why.
absl::Status WritePortFile(const std::string& path, uint32_t port);

}  // namespace covey::scheduler
