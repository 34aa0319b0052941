// SPDX-License-Identifier: Apache-2.0
#include "common/net/host_port.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/numbers.h"

namespace covey {

bool IsHostPort(absl::string_view text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  return colon != absl::string_view::npos && colon > 0 &&
         absl::SimpleAtoi(text.substr(colon + 1), &port) && port > 0 && port <= 65535;
}

}  // namespace covey
