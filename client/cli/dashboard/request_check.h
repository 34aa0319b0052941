// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/http/http_message.h"

namespace covey::cli {

// Which requests the dashboard answers. Pure.

// The header in which the page sends the token.
inline constexpr char kTokenHeader[] = "Covey-Token";

// Nothing when the request is in order, otherwise the refusal. Refused with 403: a Host other than
// 127.0.0.1 or localhost with this port, which keeps out names that other pages have pointed at
// this host; an Origin that is not this page; and under /api/ a token other than `token`.
std::optional<HttpResponse> RefusalOf(const HttpRequest& request, uint32_t port,
                                      const std::string& token);
// Adds the headers that every answer has: the policy for content, no cache, no frames.
void AddSafeHeaders(HttpResponse& response);
// The number after "since=" in the query; 0 when there is none.
uint64_t SinceOf(const HttpRequest& request);

}  // namespace covey::cli
