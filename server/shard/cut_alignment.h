// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/contract/contract.h"
#include "common/contract/update_gate.h"
#include "proto/view.pb.h"

namespace covey::server {

// When a shard cuts its history for the snapshot that the view orders: after all pushes up to the
// ordered step of each group, and before all later ones.
//
//            order                     every push up to the steps is received
//   idle ───────────▶ aligning ───────────────────────────────────────────────▶ idle
//     ▲                │    │
//     │   withdrawn    │    │  a later push was applied before, or has waited for kHoldMax
//     └────────────────┘    └───────────────────────────────────────────────▶ failed until the
//                                                                             next order
//
// Under local the clock counts rounds: the steps of an order end a round.
//
// Actor-confined. Deterministic.
class CutAlignment {
 public:
  // The longest time for which a push waits for the cut.
  static constexpr absl::Duration kHoldMax = absl::Seconds(30);

  // Whether the shard has received the push of this step, which may still wait to be applied.
  using IsReceived = absl::FunctionRef<bool(GroupId, Step)>;

  // Begins. `gate`: of the shard, which may have received pushes before.
  void Begin(const proto::SnapshotOrder& order, const Contract& contract, const UpdateGate& gate);
  // The order is the one that was begun, and perhaps says more.
  void Update(const proto::SnapshotOrder& order) { passed_ = order.passed(); }
  // The cut is made, or withdrawn.
  void End();

  // SnapshotOrder.id; 0 = no order was begun, or it has ended.
  uint64_t order() const { return order_; }
  Epoch epoch() const { return epoch_; }  // of the order
  bool is_aligning() const { return order_ != 0 && failure_.empty(); }
  // The last step of each group before the cut, for UpdateGate::HoldBeyond.
  const absl::btree_map<GroupId, Step>& last() const { return last_; }

  // A push beyond is held from now on, if none was before.
  void NoteHeld(absl::Time now);
  // When Wake has to be called.
  absl::Time deadline() const {
    return is_aligning() ? held_since_ + kHoldMax : absl::InfiniteFuture();
  }
  void Wake(absl::Time now, const UpdateGate& gate);

  // Whether all pushes up to the steps are received.
  bool IsReached(IsReceived is_received) const;

  // Why the shard makes no cut for the order; once.
  std::optional<std::string> TakeFailure();

 private:
  void Fail(std::string why);

  uint64_t order_ = 0;
  Epoch epoch_;
  absl::btree_map<GroupId, Step> last_;
  bool passed_ = false;
  absl::Time held_since_ = absl::InfiniteFuture();
  std::string failure_;  // empty = none
  bool failure_is_new_ = false;
};

}  // namespace covey::server
