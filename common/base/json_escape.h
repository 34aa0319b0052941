// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace covey {

// `text` as it is written between the quotes of a JSON string (RFC 8259): quotes, backslashes and
// control characters are escaped, and so is every other character at which some readers end a line
// (U+0085, U+2028, U+2029). Each byte that is not part of valid UTF-8 becomes U+FFFD, since
// text may come from a peer, a file name or a command line, and one bad byte would make the whole
// line unreadable. Pure.
std::string JsonEscape(absl::string_view text);

}  // namespace covey
