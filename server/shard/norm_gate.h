// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/cluster/view.h"
#include "common/table/norm_gate.h"
#include "proto/scheduler.pb.h"
#include "server/replication/push_history.h"

namespace covey::server {

// Whether the push of a producer is too large to be applied, and whose pushes are not applied at
// all: NormGate of table.proto. The head judges, and the record says the norm and the verdict, so
// that every replica knows the same norms, and judges alike once it is the head.
//
// Promises: a push beyond the gate changes no value. While no live producer has pushed eight
// gradients, all pass. Not promised: that a wild producer is found among as many wild ones; a
// gradient that is wrong, but of usual size, is applied. Where the norms of all producers grow
// beyond the factor at once, their pushes are kept out until the running means have followed, which
// takes at most some 20 pushes of each for each factor of a million.
//
// Pure.
class NormGate {
 public:
  // Nothing = every push passes.
  explicit NormGate(std::optional<NormGateRules> rules) : rules_(rules) {}

  struct Verdict {
    // Of the mean gradient; 0 = it has none, because there is no gate, there are no samples, or all
    // elements are 0. Infinite and NaN become the largest float.
    float norm = 0;
    bool is_beyond = false;
    bool is_applied = true;
  };
  // `sum` is over `samples` examples.
  Verdict Judge(std::span<const float> sum, uint64_t samples, const Producer& producer,
                const PushHistory& history, const ClusterView& view) const;

  // The producers that have pushes beyond the gate, without table and shard.
  std::vector<proto::GatedProducer> Report(const PushHistory& history,
                                           const ClusterView& view) const;

 private:
  // Constant after construction.
  std::optional<NormGateRules> rules_;
};

}  // namespace covey::server
