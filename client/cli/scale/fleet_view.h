// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// The progress of draining and scaling. Pure.

// The number of shards whose chain includes the server.
uint32_t ShardsOn(const proto::ClusterView& view, uint64_t node);

// The newest node of this name; null when there was never one.
const proto::Node* FindNewest(const proto::ClusterView& view, absl::string_view name);

// One line: "server-1 drains: 12 of 40 shards left". `first_shards`: the number at the beginning.
std::string DrainLine(const proto::ClusterView& view, const proto::Node& node,
                      uint32_t first_shards);

// The work that is left until the wanted numbers of servers and workers are reached and the others
// have left. One line: "1 server to come, worker-3 drains". Empty = nothing.
std::string ScaleRest(const proto::ClusterView& view);

}  // namespace covey::cli
