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

// A server gets SIGTERM, and a supervisor starts it again when it has ended. A value.
struct Termination {
  absl::Duration at;  // since the start of the cluster
  std::string server;
  // It leaves when its shards are elsewhere, or after this duration.
  absl::Duration drain_deadline;
};

struct Elasticity {
  // Start times of the servers beyond the first ones.
  std::vector<absl::Duration> late_servers;
  // In order of time.
  std::vector<ElasticAction> actions;
  std::vector<Termination> terminations;
};

// `servers`: their number at the beginning. After all actions, at least one server is left that was
// never asked to leave. No terminations.
Elasticity DrawElasticity(Random random, uint32_t servers, absl::Duration safety);

// Of servers of the cluster, but the first. `servers`: as above, with the late ones.
std::vector<Termination> DrawTerminations(Random random, uint32_t servers, absl::Duration safety);

// One line.
std::string Describe(const Elasticity& elasticity);

}  // namespace covey::sim
