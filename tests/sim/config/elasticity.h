// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"

namespace covey::sim {

// One operation of an administrator on a running cluster. A value.
struct ElasticAction {
  enum class Kind {
    kDrain,
    kCancelDrain,
    kScaleServers,
    kCreateTable,
    kDropTable,
  };
  Kind kind = Kind::kDrain;
  // Since the start of the cluster; retried until it is answered.
  absl::Duration at;
  // Of the node or table.
  std::string name;
  // kScaleServers: how many; kCreateTable: servers per shard, 0 = the default.
  uint32_t number = 0;
};

struct Elasticity {
  // Start times of the servers beyond the first ones.
  std::vector<absl::Duration> late_servers;
  // In order of time.
  std::vector<ElasticAction> actions;
};

// `servers`: their number at the beginning. After all actions, at least one server is left that was
// never asked to leave.
Elasticity DrawElasticity(Random random, uint32_t servers, absl::Duration safety);

// One line.
std::string Describe(const Elasticity& elasticity);

}  // namespace covey::sim
