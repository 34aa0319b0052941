// SPDX-License-Identifier: Apache-2.0
#include "client/cli/report/markup.h"

namespace covey::cli {

std::string EscapeMarkup(absl::string_view text) {
  std::string escaped;
  escaped.reserve(text.size());
  for (const char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += static_cast<unsigned char>(letter) < ' ' && letter != '\n' ? ' ' : letter;
    }
  }
  return escaped;
}

}  // namespace covey::cli
