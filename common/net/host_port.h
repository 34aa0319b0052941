// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace covey {

// Whether the text is one address HOST:PORT to connect to: a host that is not empty, and a port
// from 1 to 65535. The host is not looked at further. Pure.
bool IsHostPort(absl::string_view text);

// Such a text. An address of IPv6 gets brackets, unless it has them. Pure.
std::string HostPort(absl::string_view host, uint32_t port);

}  // namespace covey
