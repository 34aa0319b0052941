// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace covey {

// A request without a body: GET, or HEAD, which is answered as GET is, but with the head alone. A
// plain value.
struct HttpRequest {
  std::string path;   // "/metrics", as it was sent: nothing in it is decoded
  std::string query;  // what follows the question mark; empty = nothing
  std::vector<std::pair<std::string, std::string>> headers;  // as they came

  // The first header of this name, in whatever case; empty = absent.
  absl::string_view Header(absl::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (absl::EqualsIgnoreCase(key, name)) return value;
    }
    return {};
  }
};

// A plain value.
struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  // Besides content type, length and "Connection: close", which every answer has.
  std::vector<std::pair<std::string, std::string>> headers;
};

}  // namespace covey
