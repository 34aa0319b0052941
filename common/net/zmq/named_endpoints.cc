// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/named_endpoints.h"

#include <algorithm>
#include <optional>

#include "common/base/log.h"

namespace covey {
namespace {

// How often a lookup under way is looked at.
constexpr absl::Duration kLookEvery = absl::Milliseconds(10);

}  // namespace

void NamedEndpoints::Add(const Address& peer, const std::string& endpoint) {
  names_.emplace(peer,
                 Name{.endpoint = endpoint, .lookup = std::make_unique<NameLookup>(endpoint)});
}

std::vector<std::pair<Address, std::string>> NamedEndpoints::TakeChanges(absl::Time now) {
  std::vector<std::pair<Address, std::string>> changes;
  for (auto& [peer, name] : names_) {
    if (name.lookup == nullptr) {
      if (now >= name.again) name.lookup = std::make_unique<NameLookup>(name.endpoint);
      continue;
    }
    const std::optional<absl::StatusOr<std::string>> found = name.lookup->Result();
    if (!found) continue;
    name.lookup.reset();
    if (!found->ok()) {
      name.again = now + options_.again_after_failure;
      if (!std::exchange(name.failure_logged, true)) {
        LogWarning("name_not_found", {{"peer", peer.node.value()},
                                      {"endpoint", name.endpoint},
                                      {"reason", found->status().message()}});
      }
      continue;
    }
    name.again = now + options_.again_after;
    name.failure_logged = false;
    if (**found == name.address) continue;
    name.address = **found;
    changes.emplace_back(peer, name.address);
  }
  return changes;
}

absl::Time NamedEndpoints::NextChange(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [peer, name] : names_) {
    next = std::min(next, name.lookup == nullptr ? name.again : now + kLookEvery);
  }
  return next;
}

}  // namespace covey
