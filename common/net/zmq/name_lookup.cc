// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/name_lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace covey {
namespace {

constexpr absl::string_view kTcp = "tcp://";

struct HostAndPort {
  std::string host;
  std::string port;
};

HostAndPort Split(absl::string_view endpoint) {
  absl::ConsumePrefix(&endpoint, kTcp);
  const size_t colon = endpoint.rfind(':');
  if (colon == absl::string_view::npos) return {std::string(endpoint), ""};
  return {std::string(endpoint.substr(0, colon)), std::string(endpoint.substr(colon + 1))};
}

}  // namespace

// The C library writes to it until the lookup has ended.
struct NameLookup::Request {
  HostAndPort name;
  addrinfo hints = {};
  gaicb lookup = {};
  int refusal = 0;  // why it has not begun
};

bool NameLookup::IsNeeded(absl::string_view endpoint) {
  if (!absl::StartsWith(endpoint, kTcp)) return false;
  const std::string host = Split(endpoint).host;
  in_addr address;
  // An address in brackets is one of IPv6.
  return !absl::StartsWith(host, "[") && inet_pton(AF_INET, host.c_str(), &address) != 1;
}

NameLookup::NameLookup(absl::string_view endpoint)
    : request_(std::make_unique<Request>(Request{.name = Split(endpoint)})) {
  request_->hints.ai_socktype = SOCK_STREAM;
  request_->lookup.ar_name = request_->name.host.c_str();
  request_->lookup.ar_request = &request_->hints;
  gaicb* lookup = &request_->lookup;
  request_->refusal = getaddrinfo_a(GAI_NOWAIT, &lookup, 1, nullptr);
}

NameLookup::~NameLookup() {
  if (request_->refusal != 0) return;
  if (gai_error(&request_->lookup) == EAI_INPROGRESS &&
      gai_cancel(&request_->lookup) == EAI_NOTCANCELED) {
    static_cast<void>(request_.release());  // a lookup that goes on writes to it
    return;
  }
  if (request_->lookup.ar_result != nullptr) freeaddrinfo(request_->lookup.ar_result);
}

std::optional<absl::StatusOr<std::string>> NameLookup::Result() const {
  const int error = request_->refusal != 0 ? request_->refusal : gai_error(&request_->lookup);
  if (error == EAI_INPROGRESS) return std::nullopt;
  if (error != 0) {
    return absl::NotFoundError(
        absl::StrCat("the name ", request_->name.host, " has no address: ", gai_strerror(error)));
  }
  // One of IPv4, where the name has both.
  const addrinfo* found = request_->lookup.ar_result;
  for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
    if (each->ai_family != AF_INET) continue;
    found = each;
    break;
  }
  char address[NI_MAXHOST] = {};
  getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof(address), nullptr, 0,
              NI_NUMERICHOST);
  const bool is_ipv6 = found->ai_family == AF_INET6;
  return absl::StrCat(kTcp, is_ipv6 ? "[" : "", address, is_ipv6 ? "]:" : ":", request_->name.port);
}

}  // namespace covey
