// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "proto/view.pb.h"

namespace covey::sim {

// What keeps a view from being that of a whole cluster, in words; empty when nothing does. A whole
// cluster has, of every shard, as many servers as the table asks for, or all of them if there are
// fewer; they are alive, none is being filled, and none of them was asked to go. Who was asked to
// go is gone.
//
// A primary alone may have called pushes durable that its table's contract holds until others come;
// it stays alone, and does not go, until they have: that hinders nothing.
std::string WhyNotWhole(const proto::ClusterView& view);

// Servers that a shard of the table is to have.
uint32_t WantedReplicas(const proto::TableSpec& spec);
// Asks for so many; 0 = the default. Fewer servers are no hindrance.
void SetReplicas(uint32_t replicas, proto::TableSpec& spec);

}  // namespace covey::sim
