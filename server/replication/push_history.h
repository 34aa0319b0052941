// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/dedup_window.h"
#include "common/cluster/ids.h"
#include "proto/parameter.pb.h"
#include "proto/replication.pb.h"
#include "server/replication/push_norms.h"

namespace covey::server {

// The source of one sequence of pushes: a group, or a client node.
struct Producer {
  enum class Kind { kClient, kGroup };
  Kind kind = Kind::kClient;
  uint64_t id = 0;
  friend constexpr auto operator<=>(const Producer&, const Producer&) = default;
};

// The identity of a push within its shard.
struct PushKey {
  Producer producer;
  uint64_t incarnation = 0;  // of a group: its generation
  uint64_t sequence = 0;
  friend constexpr bool operator==(const PushKey&, const PushKey&) = default;
};
PushKey KeyOf(const proto::PushId& id);

// The pushes that have become part of one shard's history, by producer; it distinguishes duplicates
// from new pushes. All replicas of a shard have the same history, because it depends on the calls
// alone. Pushes that were received and wait to be applied are elsewhere: AckLedger.
//
// Limits: the caller of Note keeps about kProducersPerShardMax producers, and forgets those that
// are gone. A push of a producer that is gone must be refused before it gets here.
//
// Actor-confined. Deterministic.
class PushHistory {
 public:
  struct Finding {
    bool known = false;
    // For a known push: it was too stale for the contract, so it is never applied.
    bool discarded = false;
    // For a known push: the version at which it was applied; 0 = not applied.
    Version version;
  };
  // ABORTED: a newer incarnation of the producer has pushed. INVALID_ARGUMENT: the sequence
  // is too old to be remembered.
  absl::StatusOr<Finding> Find(const PushKey& key) const;

  // Records the version at which a push was applied. A new incarnation of a client replaces the one
  // before; a group's new generation continues its steps. Without effect for a push that Find
  // refuses.
  void Note(const PushKey& key, Version version);
  // Records that a push is never applied.
  void NoteDiscarded(const PushKey& key);
  // Records the norm of a push that was just noted. Without effect for an unknown producer.
  void NoteNorm(const Producer& producer, float norm, bool is_beyond);

  // The usual norm of pushes: the median over the producers whose own is known and for which
  // `counts` holds; of an even number, the lower one. Nothing = none is known. Linear.
  std::optional<float> UsualNorm(absl::FunctionRef<bool(const Producer&)> counts) const;
  // Those that have pushed something with a norm, in growing order.
  void ForEachNorm(absl::FunctionRef<void(const Producer&, const PushNorms&)> call) const;

  bool Knows(const Producer& producer) const { return entries_.contains(producer); }
  // Whether the push of this sequence is known, of whichever incarnation.
  bool Contains(const Producer& producer, uint64_t sequence) const;
  // The producers that are gone and can be forgotten, in growing order: all but the one that pushed
  // last, from whose entry a restored history goes on counting pushes. Linear.
  std::vector<Producer> Forgettable(absl::FunctionRef<bool(const Producer&)> is_gone) const;
  void Forget(const Producer& producer) { entries_.erase(producer); }

  // Plants PlantedBug::kForgetNormsOnTakeover.
  void ForgetNorms();

  // Everything, as one record per producer in growing order; and back. A restored history finds the
  // same as the described one. INVALID_ARGUMENT: no history has this description; the object must
  // not be used then.
  void Describe(absl::FunctionRef<void(proto::ProducerRecord)> add) const;
  absl::Status Restore(const proto::ProducerRecord& record);
  // Equal for equal histories.
  uint64_t Digest() const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t incarnation = 0;
    uint64_t last_use = 0;  // the value of uses_ at the newest push
    DedupWindow window;
    PushNorms norms;  // of pushes to a table with a gate
  };

  absl::btree_map<Producer, Entry> entries_;
  uint64_t uses_ = 0;  // pushes noted
};

}  // namespace covey::server
