// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/name_lookup.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <sys/socket.h>

#include <utility>

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
  // Begins.
  Request(HostAndPort looked_up, int family) : name(std::move(looked_up)) {
    hints.ai_family = family;
    hints.ai_socktype = SOCK_STREAM;
    lookup.ar_name = name.host.c_str();
    lookup.ar_request = &hints;
    gaicb* one = &lookup;
    refusal = getaddrinfo_a(GAI_NOWAIT, &one, 1, nullptr);
  }
  ~Request() {
    if (lookup.ar_result != nullptr) freeaddrinfo(lookup.ar_result);
  }
  int Error() { return refusal != 0 ? refusal : gai_error(&lookup); }

  const HostAndPort name;
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
    : request_(std::make_unique<Request>(Split(endpoint), AF_INET)) {}

NameLookup::~NameLookup() {
  // A lookup that goes on writes to its request, and one that was refused may have begun.
  const bool goes_on =
      request_->Error() == EAI_INPROGRESS && gai_cancel(&request_->lookup) == EAI_NOTCANCELED;
  if (goes_on || request_->refusal != 0) static_cast<void>(request_.release());
}

std::optional<absl::StatusOr<std::string>> NameLookup::Result() {
  const int error = request_->Error();
  if (error == EAI_INPROGRESS) return std::nullopt;
  const bool has_no_address = error == EAI_NONAME || error == EAI_NODATA || error == EAI_ADDRFAMILY;
  if (has_no_address && request_->hints.ai_family == AF_INET) {
    request_ = std::make_unique<Request>(request_->name, AF_INET6);
    return std::nullopt;
  }
  if (error != 0) {
    return absl::NotFoundError(
        absl::StrCat("the name ", request_->name.host, " has no address: ", gai_strerror(error)));
  }
  const addrinfo* const found = request_->lookup.ar_result;
  char address[NI_MAXHOST] = {};
  getnameinfo(found->ai_addr, found->ai_addrlen, address, sizeof(address), nullptr, 0,
              NI_NUMERICHOST);
  const bool is_ipv6 = found->ai_family == AF_INET6;
  return absl::StrCat(kTcp, is_ipv6 ? "[" : "", address, is_ipv6 ? "]:" : ":", request_->name.port);
}

}  // namespace covey
