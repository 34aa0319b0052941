// SPDX-License-Identifier: Apache-2.0
#include "common/base/json_escape.h"

#include <cstddef>
#include <cstdint>

namespace covey {
namespace {

// Length in bytes of the UTF-8 sequence at the start of `text`, or 0 when the bytes there are not
// valid (RFC 3629: no overlong form, no surrogate, nothing above U+10FFFF). Precondition: `text` is
// not empty.
size_t SequenceLength(absl::string_view text) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const size_t length = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool is_overlong = (lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xF0 && byte(1) < 0x90);
  const bool is_surrogate = lead == 0xED && byte(1) >= 0xA0;
  const bool is_beyond = lead == 0xF4 && byte(1) >= 0x90;
  return is_overlong || is_surrogate || is_beyond ? 0 : length;
}

// A character beyond ASCII that ends a line for some readers, escaped; empty for all others.
absl::string_view EscapedBreak(absl::string_view character) {
  if (character == "\xC2\x85") return "\\u0085";
  if (character == "\xE2\x80\xA8") return "\\u2028";
  if (character == "\xE2\x80\xA9") return "\\u2029";
  return "";
}

}  // namespace

std::string JsonEscape(absl::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const size_t length = SequenceLength(text);
    const auto c = static_cast<uint8_t>(text[0]);
    if (length == 0) {
      out.append(kReplacement.data(), kReplacement.size());
    } else if (const absl::string_view escaped = EscapedBreak(text.substr(0, length));
               !escaped.empty()) {
      out.append(escaped.data(), escaped.size());
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += text[0];
    } else if (c < 0x20) {
      out += "\\u00";
      out += kHex[c >> 4];
      out += kHex[c & 15];
    } else {
      out.append(text.data(), length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace covey
