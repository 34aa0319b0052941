// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "common/cluster/ids.h"
#include "common/contract/contract.h"
#include "common/contract/update_gate.h"
#include "common/table/round_mean.h"
#include "server/replication/push_history.h"
#include "server/replication/shard_record.h"
#include "server/shard/gradient_sum.h"

namespace covey::server {

// A push that has been received.
struct ReceivedPush {
  PushKey key;
  GroupId group;  // 0: a plain client's
  Step step;      // of the group
  uint64_t samples = 0;
  Version base_version;  // the gradient was computed on it; 0 = unknown
  double rate_factor = 1;
  // Of the norm gate: as in RecordedPush. A discarded push has no samples.
  float norm = 0;
  bool is_beyond_gate = false;
  bool is_discarded = false;
  Epoch view;  // that its sender knew
};

// Pushes that become one new version of a shard.
struct AggregatedUpdate {
  absl::InlinedVector<ReceivedPush, 2> pushes;  // in the order of summation
  GradientSum gradient_sum;                     // of the pushes with samples
  uint64_t samples = 0;                         // 0 = nothing is updated
  // The encoded form of the sum: that of the only push, or that of the sum itself.
  EncodedGradient encoded;

  // The mean of the pushes' factors, weighted by samples. Precondition: samples > 0.
  double rate_factor() const;
};

// Received pushes with their gradients, until the UpdateGate makes an update of them. When the gate
// sums in the order of arrival, it keeps one running sum; otherwise it keeps each gradient in the
// frame in which it arrived. Lent frames (Buffer::Lend) are copied by KeepHeld. It depends only on
// the order and times of calls.
//
// Actor-confined. `spares` outlives it.
class GradientAggregator {
 public:
  // `row_width` as GradientShape.
  GradientAggregator(const Contract& contract, BufferPool& spares, size_t row_width = 0,
                     RoundMean mean = RoundMean::kOfAllPushes);

  // Shows which pushes wait, and whether a push may be added.
  const UpdateGate& gate() const { return gate_; }

  // Precondition: the gate admits the push, and it is no duplicate. `encoded`: the same gradient as
  // it arrived; without a frame when `gradient` has been changed since.
  void Add(const ReceivedPush& push, const GradientBuffers& gradient,
           const EncodedGradient& encoded = {});

  // Called instead of Add when the push is received but will be part of no update.
  void Discard(const ReceivedPush& push) { gate_.Pass(push.group, push.step); }

  // Bytes of all gradients that wait.
  size_t held_bytes() const;

  // The next update, if one is due. Call it until there is none, as UpdateGate::TakeDue.
  std::optional<AggregatedUpdate> TakeDue(absl::Time now, const GroupCensus& groups);

  // To be called after each Add, once TakeDue has no more updates: the push that was added is held
  // beyond the call in which its frame was delivered, unless it is part of an update.
  void KeepHeld();

  // As UpdateGate::Resume.
  void Resume(GroupId group, Step step) { gate_.Resume(group, step); }

  void FlushPartialBuffer() { gate_.FlushPartialBuffer(); }

  // As UpdateGate.
  void HoldBeyond(absl::btree_map<GroupId, Step> last) { gate_.HoldBeyond(std::move(last)); }
  void HurryHeld() { gate_.HurryHeld(); }
  void Release() { gate_.Release(); }

  // As UpdateGate::SwitchTo. Pushes may be added again once TakeDue has none.
  void SwitchTo(const Contract& contract) { gate_.SwitchTo(contract); }

 private:
  struct HeldPush {
    ReceivedPush push;
    GradientBuffers gradient;
    EncodedGradient encoded;
  };
  static void Join(const HeldPush& held, AggregatedUpdate& update);
  void Sum(const HeldPush& held);
  // Those that were held beyond a cut, and are arrivals of the gate by now; they came first.
  void SumReleased();
  // `kept`: the elements of the gradient, which were at `before`. The encoded form is kept, too.
  void KeepEncoded(const uint8_t* before, const Buffer& kept, EncodedGradient& encoded);
  void Keep(HeldPush& held);

  // Constant after construction.
  BufferPool& spares_;
  const size_t row_width_;
  const RoundMean mean_;

  // Owned by the actor's thread.
  UpdateGate gate_;
  absl::btree_map<uint64_t, HeldPush> held_;  // by the gate's number
  AggregatedUpdate arrivals_;                 // those that are summed on arrival
};

}  // namespace covey::server
