// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace covey::cli {

// `text` escaped for content or attributes of HTML or SVG. Control characters, which XML does not
// allow, become spaces. Pure.
std::string EscapeMarkup(absl::string_view text);

}  // namespace covey::cli
