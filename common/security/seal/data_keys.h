// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/security/seal/direction.h"
#include "common/security/seal/node_key.h"
#include "common/security/secret.h"

namespace covey {

// The keys by which a process seals what it sends on the data plane, and opens what it receives:
// its own pair, drawn when it starts, and the public keys of the other nodes, as the newest view
// has them. The process registers its public key over a connection that proves who it is, and
// whoever is in the view has done so; so a message that opens under a node's key is from that node.
//
// There is one per registration. It is created before the process registers, fed with each view
// that the process adopts, and read by the transports of all its loops. Thread-safe.
class DataKeys {
 public:
  // How long a node that has left is still heard: its last messages may be under way.
  static constexpr absl::Duration kHeardAfterLeaving = absl::Seconds(5);

  // Another node of the view, which is ALIVE or has just left. Immutable.
  struct Peer {
    NodeId node;
    Incarnation incarnation;
    NodeKey::Public key;
    Secret pair;  // PairSecret
  };

  // `job` is the job's fingerprint; `heard_after_leaving` is for tests. INTERNAL: OpenSSL fails.
  static absl::StatusOr<std::shared_ptr<DataKeys>> Make(
      uint64_t job, absl::Duration heard_after_leaving = kHeardAfterLeaving);

  // RegisterRequest.data_key.
  std::string public_key() const;

  // This process is this node (0 = not admitted yet), and has adopted this view: its keys take the
  // place of those of the one before. A view that is not newer has no effect.
  void Follow(NodeId self, const ClusterView& view);

  // Grows when Follow has changed something, or a node that has left is not heard any more.
  uint64_t changes();
  // 0 = not admitted yet.
  NodeId self() const;

  // The node's keys. They are computed at the first call, in about 50 us. NOT_FOUND: it is not in
  // the view, and may be in a newer one. FAILED_PRECONDITION: it is DEAD, has left, or has
  // registered no key.
  absl::StatusOr<std::shared_ptr<const Peer>> Find(NodeId node);
  // Whether Find would still return this one.
  bool Knows(const Peer& peer) const;

  // The direction from this process's loop to one of the peer's, and the reverse.
  Direction To(const Peer& peer, uint32_t own_loop, uint32_t peer_loop) const;
  Direction From(const Peer& peer, uint32_t peer_loop, uint32_t own_loop) const;

  // A loop's messages are numbered by one transport only; a second one would seal other messages
  // under the same numbers. True at the first call per loop.
  bool ClaimLoop(uint32_t loop);

 private:
  // ToUnixNanos of the infinite future.
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  struct Entry {
    Incarnation incarnation;
    NodeKey::Public key;
    // Of a node that has left; infinite = it is ALIVE.
    absl::Time heard_until = absl::InfiniteFuture();
    std::shared_ptr<const Peer> peer;  // null = not computed yet
  };

  DataKeys(uint64_t job, absl::Duration heard_after_leaving, NodeKey own)
      : job_(job), heard_after_leaving_(heard_after_leaving), own_(std::move(own)) {}
  // Whether the view is newer.
  bool Adopt(const ClusterView& view) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The nodes that have left, and were heard until now. O(nodes), once per view and node that left.
  void DropSilenced(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t job_;
  const absl::Duration heard_after_leaving_;
  const NodeKey own_;
  std::atomic<uint64_t> changes_ = 0;
  // When DropSilenced has something to do, as ToUnixNanos of MonotonicNow; kNever = nothing to do.
  // Read for each message.
  std::atomic<int64_t> next_drop_ = kNever;

  mutable Mutex mutex_;
  NodeId self_ ABSL_GUARDED_BY(mutex_);
  Epoch epoch_ ABSL_GUARDED_BY(mutex_);
  absl::btree_map<NodeId, Entry> nodes_ ABSL_GUARDED_BY(mutex_);
  absl::btree_set<NodeId> refused_ ABSL_GUARDED_BY(mutex_);  // in the view, and not heard
  absl::btree_set<uint32_t> claimed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace covey
