// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/btree_map.h"
#include "absl/functional/function_ref.h"
#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "common/cluster/ids.h"
#include "common/contract/contract.h"
#include "common/contract/momentum_governor.h"
#include "common/table/asynchrony_rules.h"
#include "proto/scheduler.pb.h"
#include "server/replication/push_history.h"
#include "server/shard/gradient_aggregator.h"
#include "server/table/dense_shard.h"

namespace covey::server {

// Measures how stale gradients are, and corrects for it as the table's rules say. The staleness of
// a push is the number of updates between the version that its gradient was computed on and its
// application. The staleness of an update is the mean over its pushes with a known version.
//
// Memory: with delay compensation a handle to the values that each producer was sent last, which
// keeps one old copy of the shard per producer alive. Limits: kProducersPerShardMax producers;
// gradients of further producers are not compensated.
//
// Actor-confined. Deterministic: depends on the order of calls only.
class StalenessCorrection {
 public:
  // `estimates`: those of the shard's content. `spares` outlives it.
  StalenessCorrection(const AsynchronyRules& rules, const AsynchronyEstimates& estimates,
                      BufferPool& spares);

  // Whether RecordSent uses the values.
  bool compensates() const { return rules_.delay_compensation > 0; }
  // A reply with these values goes to the producer. `is_first`: the call counts only if no reply
  // was sent before. It is for replies on which the producer's next gradient may not be computed.
  void RecordSent(const Producer& producer, Version version, const Buffer& values, bool is_first);
  // Forgets the values sent to producers that are gone.
  void Forget(absl::FunctionRef<bool(const Producer&)> is_gone);

  // The gradient sum that the push would have, to first order, at the present `values`. Returns the
  // same handle when compensation is off, or when the push was computed on other values than those
  // last sent to its producer.
  Buffer Compensate(const ReceivedPush& push, const Buffer& gradient_sum, const Buffer& values);

  // The adjustment of the update that makes version `before` + 1. To be called once per update.
  UpdateAdjustment BeginUpdate(const AggregatedUpdate& update, Version before, size_t live_groups,
                               const Contract& contract);

  // What the record of that update has to say of the table's asynchrony; nothing where the momentum
  // is not governed, since it would change no update.
  AsynchronyEstimates estimates() const {
    return governor_.target() ? governor_.estimates() : AsynchronyEstimates();
  }

  // All fields except table, updates and discarded.
  proto::TableAsynchrony Report() const;

 private:
  struct Sent {
    Version version;
    Buffer values;
  };

  // Constant after construction.
  const AsynchronyRules rules_;
  BufferPool& spares_;

  // Owned by the actor's thread.
  MomentumGovernor governor_;
  absl::btree_map<Producer, Sent> sent_;
};

}  // namespace covey::server
