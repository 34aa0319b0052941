// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey {

// Looks up the name of a host without waiting for it. libzmq would do so on its I/O thread, at each
// attempt to connect; a resolver that does not answer would stop all connections of the transport.
//
// An address of IPv4 is looked up first, and one of IPv6 only where the name has none. So a
// resolver that fails for a moment does not make a host with both change its address.
//
// The C library has threads for it (getaddrinfo_a), and gives a lookup up after the resolver's own
// time-outs. Actor-confined. Its destruction does not wait for the lookup.
class NameLookup {
 public:
  // Whether the endpoint has a name, as in "tcp://host-7:7000", and no address. Pure.
  static bool IsNeeded(absl::string_view endpoint);

  // Begins. Precondition: IsNeeded.
  explicit NameLookup(absl::string_view endpoint);
  ~NameLookup();
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  // Nothing: the lookup is under way. Then the endpoint with an address in place of the name;
  // NOT_FOUND: it has none, and why.
  std::optional<absl::StatusOr<std::string>> Result();

 private:
  struct Request;
  std::unique_ptr<Request> request_;
};

}  // namespace covey
