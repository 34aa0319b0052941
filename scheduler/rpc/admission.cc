// SPDX-License-Identifier: Apache-2.0
#include "scheduler/rpc/admission.h"

#include <arpa/inet.h>

#include <algorithm>
#include <bit>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/base/log.h"

namespace covey::scheduler {
namespace {

// The host of a connection as gRPC names it. One of IPv6 has a network of 64 bits for itself.
std::string HostOf(const std::string& peer) {
  std::string host = peer.substr(0, peer.rfind(':'));
  if (!absl::StartsWith(host, "ipv6:")) return host;
  std::string text = absl::StrReplaceAll(absl::StripPrefix(host, "ipv6:"),
                                         {{"[", ""}, {"]", ""}, {"%5B", ""}, {"%5D", ""}});
  text = text.substr(0, text.find('%'));  // the scope
  in6_addr address;
  if (inet_pton(AF_INET6, text.c_str(), &address) != 1) return host;
  std::fill(std::begin(address.s6_addr) + 8, std::end(address.s6_addr), 0);
  char network[INET6_ADDRSTRLEN];
  return absl::StrCat("ipv6:", inet_ntop(AF_INET6, &address, network, sizeof(network)), "/64");
}

}  // namespace

absl::Status Admission::Enter(const Caller& caller, Kind kind, const std::string& peer,
                              Place& place) {
  const uint64_t node = caller.node;
  std::string reason;
  {
    MutexLock lock(mutex_);
    const auto trusted = trusted_.find(node);
    if (trusted != trusted_.end() && trusted->second == caller) {
      size_t& calls = of_nodes_[node];
      if (calls < kCallsPerNodeMax) {
        ++calls;
        place = {.node = node};
        return absl::OkStatus();
      }
      reason = absl::StrCat("node ", node, " has ", calls, " calls in flight already");
    } else {
      const std::string host = HostOf(peer);
      Room& room = rooms_[kind];
      const auto at = room.of_hosts.find(host);
      const size_t of_host = at == room.of_hosts.end() ? 0 : at->second;
      if (room.calls < kUntrustedCallsMax && of_host < kUntrustedCallsPerHostMax) {
        ++room.of_hosts[host];
        ++room.calls;
        place = {.host = host, .kind = kind};
        return absl::OkStatus();
      }
      reason = absl::StrCat(room.calls, kind == Kind::kWatch ? " watches" : " requests",
                            " of callers other than nodes, ", of_host, " of them from ", host,
                            ", are in flight already");
    }
    if (!std::has_single_bit(++refused_)) {
      return absl::ResourceExhaustedError(absl::StrCat(reason, "; try again later"));
    }
  }
  LogWarning("call_refused", {{"reason", reason}});
  return absl::ResourceExhaustedError(absl::StrCat(reason, "; try again later"));
}

void Admission::Leave(const Place& place) {
  MutexLock lock(mutex_);
  if (place.node != 0) {
    const auto at = of_nodes_.find(place.node);
    if (--at->second == 0) of_nodes_.erase(at);
    return;
  }
  Room& room = rooms_[place.kind];
  const auto at = room.of_hosts.find(place.host);
  if (--at->second == 0) room.of_hosts.erase(at);
  --room.calls;
}

void Admission::MarkTrusted(const Caller& caller) {
  MutexLock lock(mutex_);
  trusted_[caller.node] = caller;
}

void Admission::MarkUntrusted(const Caller& caller) {
  MutexLock lock(mutex_);
  const auto trusted = trusted_.find(caller.node);
  if (trusted != trusted_.end() && trusted->second == caller) trusted_.erase(trusted);
}

uint64_t Admission::refused() {
  MutexLock lock(mutex_);
  return refused_;
}

}  // namespace covey::scheduler
