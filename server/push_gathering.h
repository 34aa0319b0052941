#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/cluster/contract.h"
#include "common/cluster/ids.h"
#include "server/gradient_sum.h"
#include "server/producers.h"
#include "server/table/spare_buffers.h"

namespace covey::server {

// A push that has been received.
struct GatheredPush {
  PushKey key;
  GroupId group;  // 0: a plain client's
  Step step;      // of the group
  uint64_t samples = 0;
};

// Pushes that become one new version of a shard.
struct GatheredUpdate {
  absl::InlinedVector<GatheredPush, 2> pushes;  // in the order of summation
  GradientSum gradient_sum;
  uint64_t samples = 0;
};

// The groups of the present view.
struct GroupCensus {
  const std::vector<GroupId>& live;  // in growing order
  size_t known = 0;                  // live, broken and done
};

// Says when received pushes become an update, as the table's contract asks:
//
//   bsp          one update per step, once every live group's push for it is here, summed in
//                growing order of group; steps are applied in growing order
//   ssp, async   one update per push, on arrival
//   buffered(k)  one update per k arrivals, summed in that order. k is the number of live groups
//                when 0, else it shrinks with the share of groups that still live, so that the last
//                pushes of a job are not held for ever; at least 1
//
// Every push that was added is part of exactly one update, sooner or later. Depends on nothing but
// the order of calls. Limits: kHeldStepsPerGroupMax under bsp; a buffered contract holds one sum.
//
// Actor-confined. `spares` outlives it.
class PushGathering {
 public:
  PushGathering(const Contract& contract, SpareBuffers& spares);

  // Whether the push may be added.
  // Under bsp: INVALID_ARGUMENT: a plain client's, or of a step that is over. ABORTED: the group's
  // push for this step is held already. RESOURCE_EXHAUSTED: the group is too far ahead.
  absl::Status Admit(GroupId group, Step step) const;

  // Precondition: admitted, and no duplicate.
  void Add(const GatheredPush& push, const Buffer& gradient);

  // The next update, if one is due. To be asked until there is none, after each Add and whenever
  // the groups have changed.
  std::optional<GatheredUpdate> TakeDue(const GroupCensus& groups);

  // Samples behind all pushes that wait.
  uint64_t samples_held() const { return samples_held_; }

 private:
  struct HeldPush {
    GatheredPush push;
    Buffer gradient;
  };
  using HeldStep = absl::btree_map<GroupId, HeldPush>;

  std::optional<GatheredUpdate> TakeStep(const GroupCensus& groups);
  size_t ArrivalsPerUpdate(const GroupCensus& groups) const;

  // Constant after construction.
  const Contract contract_;
  SpareBuffers& spares_;

  // Owned by the actor's thread.
  absl::btree_map<Step, HeldStep> steps_;  // bsp
  Step last_step_;                         // bsp: the last one taken
  GatheredUpdate arrivals_;                // the other contracts
  uint64_t samples_held_ = 0;
};

}  // namespace covey::server
