// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "client/cli/chaos/ledger_load.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// Where the scheduler's view places the replicas of an experiment's tables. Pure.

// Names of the servers that hold the lane's shard; head first.
std::vector<std::string> HoldersOf(const proto::ClusterView& view, const LedgerLoad::Lane& lane);
// The lanes whose shard has the server of this name as its head.
std::vector<const LedgerLoad::Lane*> LanesHeadedBy(
    absl::string_view server, const proto::ClusterView& view,
    const std::vector<std::unique_ptr<LedgerLoad::Lane>>& lanes);
// Whether every shard has a second replica that is a full member.
bool HasReplicas(const proto::ClusterView& view);
// Whether a node of this name is ALIVE.
bool IsAlive(const proto::ClusterView& view, absl::string_view name);

}  // namespace covey::cli
