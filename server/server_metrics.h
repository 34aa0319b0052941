// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/metrics/metric_page.h"
#include "proto/scheduler.pb.h"
#include "server/replication/shard_counters.h"

namespace covey::server {

// What a server shows to Prometheus. Pure.

// Adds what a data loop has counted; for each loop, and the values are added up.
void AddLoopMetrics(const ShardCounters& counters, MetricPage& page);
// Adds the load of all loops, as heartbeats report it. Tables beyond 16 are added up as "_other".
void AddLoadMetrics(const proto::ServerLoad& load, const ClusterView& view,
                    uint64_t queued_bytes_max, MetricPage& page);

// The shards whose content this server is still being sent.
uint64_t ShardsJoining(const ClusterView& view, NodeId server);

}  // namespace covey::server
