#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/dedup_window.h"
#include "common/cluster/ids.h"

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

// What one shard has received from each producer, and what became of it.
//
// Limits: kProducersPerShardMax; beyond it the producer that is gone and was silent longest is
// forgotten. A producer that is gone must be refused before it gets here.
//
// Actor-confined. Deterministic.
class Producers {
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

  // Notes the receipt of a push that Find did not know. A new incarnation of a client replaces the
  // one before; a group's new generation goes on with its steps.
  // RESOURCE_EXHAUSTED: too many producers, none of which `is_gone`; nothing is noted then.
  absl::Status Record(const PushKey& key, absl::FunctionRef<bool(const Producer&)> is_gone);

  // Notes the version at which it was applied.
  void SetVersion(const PushKey& key, Version version);
  // Notes that it never will be.
  void SetDiscarded(const PushKey& key);

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t incarnation = 0;
    uint64_t last_use = 0;
    DedupWindow window;
  };

  absl::Status MakeRoom(absl::FunctionRef<bool(const Producer&)> is_gone);

  absl::btree_map<Producer, Entry> entries_;
  uint64_t uses_ = 0;
};

}  // namespace covey::server
