// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace covey::cli {

// `text` as content or attribute of HTML or SVG: nothing in it is taken for markup. Control
// characters, which XML does not allow, become spaces. Pure.
std::string EscapeMarkup(absl::string_view text);

}  // namespace covey::cli
