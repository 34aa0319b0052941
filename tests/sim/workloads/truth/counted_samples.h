// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/workloads/truth/given_gradients.h"
#include "tests/sim/workloads/truth/step_elements.h"

namespace covey::sim {

// Checks the number of samples that a shard has counted against the steps that its values show.
// Values alone cannot show that a push was applied twice where several pushes are averaged: twice a
// half is one. But each application counts its samples.
//
// Invariants, for every reply with values:
//  - the samples are those of the pushes of the steps that are in. A step that was repeated after a
//    death may have been pushed with different numbers of samples, of which one counts;
//  - where nothing but groups' whole steps is pushed, the values add up to the version, since each
//    update adds a mean of ones.
//
// Actor-confined. `elements` and `given` outlive it.
class CountedSamples {
 public:
  // `given`: as StalenessTruth::Options::given.
  CountedSamples(const StepElements& elements, const GivenGradients* given, Violations& violations)
      : elements_(elements), given_(given), violations_(violations) {}

  // A push request has left its sender.
  void NotePush(const proto::PushRequest& push);
  // `reply`: with values.
  void Check(const ShardReply& reply);

 private:
  struct Range {
    uint64_t least = 0;
    uint64_t most = 0;
  };

  const StepElements& elements_;
  const GivenGradients* const given_;
  Violations& violations_;
  std::map<std::pair<ShardId, std::pair<GroupId, Step>>, Range> samples_;
};

}  // namespace covey::sim
