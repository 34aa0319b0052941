// SPDX-License-Identifier: Apache-2.0
#include "client/cli/dashboard/request_check.h"

#include <openssl/crypto.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace covey::cli {
namespace {

HttpResponse Refused(std::string why) {
  return {.status = 403, .body = absl::StrCat(std::move(why), "\n")};
}

bool IsOwnHost(absl::string_view host, uint32_t port) {
  return host == absl::StrCat("127.0.0.1:", port) || host == absl::StrCat("localhost:", port);
}

// Takes the same time wherever two tokens differ.
bool IsToken(absl::string_view given, const std::string& token) {
  return given.size() == token.size() &&
         CRYPTO_memcmp(given.data(), token.data(), token.size()) == 0;
}

}  // namespace

std::optional<HttpResponse> RefusalOf(const HttpRequest& request, uint32_t port,
                                      const std::string& token) {
  if (!IsOwnHost(request.Header("Host"), port)) {
    return Refused("this Host is not the dashboard's; open the URL that covey dashboard printed");
  }
  if (absl::string_view origin = request.Header("Origin"); !origin.empty()) {
    if (!absl::ConsumePrefix(&origin, "http://") || !IsOwnHost(origin, port)) {
      return Refused("pages of other origins may not ask the dashboard");
    }
  }
  if (const absl::string_view site = request.Header("Sec-Fetch-Site");
      absl::StartsWith(request.path, "/api/") && !site.empty() && site != "same-origin") {
    return Refused("pages of other sites may not ask the dashboard");
  }
  if (absl::StartsWith(request.path, "/api/") && !IsToken(request.Header(kTokenHeader), token)) {
    return Refused("wrong or missing token; open the URL that covey dashboard printed");
  }
  return std::nullopt;
}

void AddSafeHeaders(HttpResponse& response) {
  response.headers.emplace_back(
      "Content-Security-Policy",
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' "
      "data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("X-Frame-Options", "DENY");
  response.headers.emplace_back("Referrer-Policy", "no-referrer");
  response.headers.emplace_back("Cross-Origin-Resource-Policy", "same-origin");
  response.headers.emplace_back("Cache-Control", "no-store");
}

uint64_t SinceOf(const HttpRequest& request) {
  uint64_t since = 0;
  for (absl::string_view part : absl::StrSplit(request.query, '&')) {
    if (absl::ConsumePrefix(&part, "since=") && !absl::SimpleAtoi(part, &since)) since = 0;
  }
  return since;
}

}  // namespace covey::cli
