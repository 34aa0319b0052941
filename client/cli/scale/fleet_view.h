// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// How far draining and scaling are. Pure.

// Shards whose chain has the server in it.
uint32_t ShardsOn(const proto::ClusterView& view, uint64_t node);

// The newest node of this name; null when there never was one.
const proto::Node* FindNewest(const proto::ClusterView& view, absl::string_view name);

// One line: "server-1 drains: 12 of 40 shards left". `first_shards`: when it began.
std::string DrainLine(const proto::ClusterView& view, const proto::Node& node,
                      uint32_t first_shards);

// What is still to be done until as many servers and workers are there as are wanted, and the
// others have gone; one line: "1 server to come, worker-3 drains". Empty = nothing.
std::string ScaleRest(const proto::ClusterView& view);

}  // namespace covey::cli
