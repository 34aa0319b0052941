// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "common/base/mutex.h"

namespace covey::scheduler {

// Bounds the calls of the control plane in flight. It is asked on gRPC's threads, before a call
// costs the scheduler's loop anything. A node is trusted once it has been registered, or one of its
// requests has been accepted, and each trusted node has a limit of its own. All other callers share
// one limit, with a part of it for each host. A host of IPv6 is a network of 64 bits, since it may
// have all addresses in it. So a flood from an untrusted caller takes no room from nodes, and not
// all room from other untrusted callers.
//
// Watches stay in flight, so untrusted callers have another room of the same size for them.
// Otherwise the watches of a few hundred nodes could keep out the first heartbeats of all others
// after a restart of the scheduler, which trusts none of them yet.
//
// Thread-safe.
class Admission {
 public:
  static constexpr size_t kCallsPerNodeMax = 32;
  static constexpr size_t kUntrustedCallsMax = 512;
  static constexpr size_t kUntrustedCallsPerHostMax = 256;

  enum class Kind { kRequest, kWatch };

  // A place that a call has taken, to be returned when the call is over.
  struct Place {
    uint64_t node = 0;  // 0 = an untrusted caller's
    // Of an untrusted caller.
    std::string host = "";
    Kind kind = Kind::kRequest;
  };

  // A caller, as far as it is known before its call is read.
  struct Caller {
    // The node that it claims to be; 0 = none.
    uint64_t node = 0;
    // The incarnation of that node, as it says.
    uint64_t incarnation = 0;
    // The URI of its certificate; empty = it has none, because the scheduler has none.
    std::string identity;

    friend bool operator==(const Caller&, const Caller&) = default;
  };
  // `peer` is gRPC's name of the connection: "ipv4:10.0.0.7:41234". RESOURCE_EXHAUSTED: too many
  // calls are in flight.
  absl::Status Enter(const Caller& caller, Kind kind, const std::string& peer, Place& place);
  void Leave(const Place& place);

  // The scheduler knows `caller`, or, with MarkUntrusted, has refused a request of it. So a
  // caller with another incarnation or identity takes no room from the node that it claims to be.
  void MarkTrusted(const Caller& caller);
  void MarkUntrusted(const Caller& caller);

  // Calls that were refused so far.
  uint64_t refused();

 private:
  // Of untrusted callers.
  struct Room {
    size_t calls = 0;
    std::map<std::string, size_t> of_hosts;
  };

  Mutex mutex_;
  absl::flat_hash_map<uint64_t, Caller> trusted_ ABSL_GUARDED_BY(mutex_);  // by node
  std::map<uint64_t, size_t> of_nodes_ ABSL_GUARDED_BY(mutex_);
  std::map<Kind, Room> rooms_ ABSL_GUARDED_BY(mutex_);
  uint64_t refused_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace covey::scheduler
