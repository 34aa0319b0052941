// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/zmq/name_lookup.h"

namespace covey {

// The peers of a transport whose endpoints have names, and their addresses. A name is looked up
// again now and then, and more often while it has no address. A peer keeps its address when a later
// lookup fails. Actor-confined. No method waits.
class NamedEndpoints {
 public:
  struct Options {
    absl::Duration again_after = absl::Seconds(30);
    absl::Duration again_after_failure = absl::Seconds(1);
  };

  explicit NamedEndpoints(const Options& options) : options_(options) {}

  // `endpoint`: NameLookup::IsNeeded. Precondition: the peer is not there.
  void Add(const Address& peer, const std::string& endpoint);
  void Remove(const Address& peer) { names_.erase(peer); }
  bool any() const { return !names_.empty(); }

  // The peers with an address, or another one, since the last call, and their endpoints with the
  // address in place of the name.
  std::vector<std::pair<Address, std::string>> TakeChanges(absl::Time now);
  // When there may be changes; infinite: there are no names.
  absl::Time NextChange(absl::Time now) const;

 private:
  struct Name {
    std::string endpoint;
    std::string address;                 // the endpoint with the address; empty = not known
    std::unique_ptr<NameLookup> lookup;  // under way; null = none
    absl::Time again = absl::InfinitePast();
    bool failure_logged = false;  // since it had an address
  };

  const Options options_;
  absl::btree_map<Address, Name> names_;
};

}  // namespace covey
