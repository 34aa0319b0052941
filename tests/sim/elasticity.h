// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"

namespace covey::sim {

// What an administrator does to a cluster while it works. A value.
struct ElasticAction {
  enum class Kind {
    kDrain,
    kCancelDrain,
    kScaleServers,
    kCreateTable,
    kDropTable,
  };
  Kind kind = Kind::kDrain;
  // Since the start of the cluster; repeated until it is answered.
  absl::Duration at;
  // Of the node or table.
  std::string name;
  // kScaleServers: how many; kCreateTable: servers per shard, 0 = the default.
  uint32_t number = 0;
};

struct Elasticity {
  // When servers beyond the first ones are started.
  std::vector<absl::Duration> late_servers;
  // In order of time.
  std::vector<ElasticAction> actions;
};

// `servers`: how many there are from the beginning. At the end of all actions some server is left
// that nobody has asked to go.
Elasticity DrawElasticity(Random random, uint32_t servers, absl::Duration safety);

// One line.
std::string Describe(const Elasticity& elasticity);

}  // namespace covey::sim
