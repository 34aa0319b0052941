// SPDX-License-Identifier: Apache-2.0
#include "common/net/host_port.h"

#include <cstddef>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace covey {

bool IsHostPort(absl::string_view text) {
  const size_t colon = text.rfind(':');
  uint32_t port = 0;
  return colon != absl::string_view::npos && colon > 0 &&
         absl::SimpleAtoi(text.substr(colon + 1), &port) && port > 0 && port <= 65535;
}

std::string HostPort(absl::string_view host, uint32_t port) {
  const bool needs_brackets = absl::StrContains(host, ':') && !absl::StartsWith(host, "[");
  return needs_brackets ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

}  // namespace covey
