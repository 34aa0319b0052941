// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placement/restart_initialization.h"

namespace covey::scheduler {

void RestartInitialization(const proto::ClusterView& view, const proto::Table& table,
                           Transaction& change) {
  const proto::Initialization lost = table.initialization();
  if (lost.node() == 0) return;
  for (const proto::Table& other : view.tables()) {
    const proto::Initialization& named = other.initialization();
    if (named.node() != lost.node() || named.call() != lost.call()) continue;
    change.Edit(other).mutable_initialization()->set_epoch(change.epoch().value());
  }
}

}  // namespace covey::scheduler
