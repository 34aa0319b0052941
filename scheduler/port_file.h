// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace covey::scheduler {

// Tells whoever started this process where it listens: the file appears with the port and a newline
// in it, never half written. UNAVAILABLE: the operating system refuses, the message says why.
absl::Status WritePortFile(const std::string& path, uint32_t port);

}  // namespace covey::scheduler
