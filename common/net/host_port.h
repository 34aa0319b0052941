// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/strings/string_view.h"

namespace covey {

// Whether the text is one address HOST:PORT to connect to: a host that is not empty, and a port
// from 1 to 65535. The host is not looked at further. Pure.
bool IsHostPort(absl::string_view text);

}  // namespace covey
