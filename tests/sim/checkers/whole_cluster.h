// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "proto/view.pb.h"

namespace covey::sim {

// Says why a view is not that of a whole cluster; empty when it is. In a whole cluster every shard
// has as many servers as its table asks for, or all of them if there are fewer. These servers are
// alive, none is being filled, and none is draining. Every server that was asked to drain has left.
//
// A head may have acknowledged pushes as durable while it was alone. It stays alone, and does
// not leave, until the table's contract lets it pass them on. Such a shard counts as whole.
std::string WhyNotWhole(const proto::ClusterView& view);

// The number of servers that a shard of the table should have.
uint32_t WantedReplicas(const proto::TableSpec& spec);
// Sets the number of replicas; 0 = the default. Having fewer servers is no obstacle.
void SetReplicas(uint32_t replicas, proto::TableSpec& spec);

}  // namespace covey::sim
