#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/dedup_window.h"
#include "common/cluster/ids.h"
#include "proto/parameter.pb.h"
#include "proto/replication.pb.h"

namespace covey::server {

// Who makes the pushes of one sequence: a group, or a client node.
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

// The pushes that have become part of one shard's history, by producer: what tells a duplicate from
// news. All replicas of a shard have the same, because it depends on the calls alone. Pushes that
// were received and wait to be applied are not in here: held_pushes.h.
//
// Limits: whoever calls Note keeps it to about kProducersPerShardMax, by forgetting those who are
// gone. A producer that is gone must be refused before it gets here.
//
// Actor-confined. Deterministic.
class PushHistory {
 public:
  struct Finding {
    bool known = false;
    // Of a known push: too stale for the contract, so it was not and will not be applied.
    bool discarded = false;
    // Of a known push: at which it was applied; 0 = not.
    Version version;
  };
  // ABORTED: a newer incarnation of the producer has pushed. INVALID_ARGUMENT: too old to tell.
  absl::StatusOr<Finding> Find(const PushKey& key) const;

  // Notes the version at which a push was applied. A new incarnation of a client replaces the one
  // before; a group's new generation goes on with its steps. Nothing happens for a push that Find
  // refuses.
  void Note(const PushKey& key, Version version);
  // Notes that it never will be applied.
  void NoteDiscarded(const PushKey& key);

  bool Knows(const Producer& producer) const { return entries_.contains(producer); }
  // Of those that are gone, the one that was silent longest. Linear.
  std::optional<Producer> FindOldest(absl::FunctionRef<bool(const Producer&)> is_gone) const;
  void Forget(const Producer& producer) { entries_.erase(producer); }

  // Everything, one record after the other in growing order of producer; and back. Restored ones
  // answer as those described. INVALID_ARGUMENT: no PushHistory describe themselves so; it is of no
  // use then.
  void Describe(absl::FunctionRef<void(proto::ProducerRecord)> add) const;
  absl::Status Restore(const proto::ProducerRecord& record);
  // Equal for equal histories.
  uint64_t Digest() const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t incarnation = 0;
    uint64_t last_use = 0;
    DedupWindow window;
  };

  absl::btree_map<Producer, Entry> entries_;
  uint64_t uses_ = 0;
};

}  // namespace covey::server
