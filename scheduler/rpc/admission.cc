// SPDX-License-Identifier: Apache-2.0
#include "scheduler/rpc/admission.h"

#include <bit>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"

namespace covey::scheduler {

absl::Status Admission::Enter(const Caller& caller, const std::string& peer, Place& place) {
  const uint64_t node = caller.node;
  std::string reason;
  {
    MutexLock lock(mutex_);
    const auto trusted = trusted_.find(node);
    if (trusted != trusted_.end() && trusted->second == caller) {
      size_t& calls = of_nodes_[node];
      if (calls < kCallsPerNodeMax) {
        ++calls;
        place = {.node = node, .host = ""};
        return absl::OkStatus();
      }
      reason = absl::StrCat("node ", node, " has ", calls, " calls in flight already");
    } else {
      const std::string host = peer.substr(0, peer.rfind(':'));
      const auto at = of_hosts_.find(host);
      const size_t of_host = at == of_hosts_.end() ? 0 : at->second;
      if (untrusted_calls_ < kUntrustedCallsMax && of_host < kUntrustedCallsPerHostMax) {
        ++of_hosts_[host];
        ++untrusted_calls_;
        place = {.node = 0, .host = host};
        return absl::OkStatus();
      }
      reason = absl::StrCat(untrusted_calls_, " calls from callers other than nodes, ", of_host,
                            " of them from ", host, ", are in flight already");
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
  const auto at = of_hosts_.find(place.host);
  if (--at->second == 0) of_hosts_.erase(at);
  --untrusted_calls_;
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
