// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/metrics/duration_histogram.h"
#include "common/metrics/metric_page.h"
#include "proto/scheduler.pb.h"
#include "server/data_loop_watch.h"
#include "server/replication/shard_counters.h"

namespace covey::server {

// What a server shows to Prometheus. Pure.

// Adds the silence of the data loop that has been silent for the longest time; none: 0.
void AddLoopSilence(const std::optional<DataLoopWatch::SilentLoop>& longest, MetricPage& page);

// Adds what a data loop has counted, and ApplyTimer::times; for each loop, and the values are added
// up.
void AddLoopMetrics(const ShardCounters& counters, const DurationHistogram& applies,
                    MetricPage& page);
// Adds the most records of a shard that the chain behind this server has not confirmed.
void AddReplicationLag(uint64_t records, MetricPage& page);
// Adds the load of all loops, as heartbeats report it. Tables beyond 16 are added up as "_other".
void AddLoadMetrics(const proto::ServerLoad& load, const ClusterView& view,
                    uint64_t queued_bytes_max, MetricPage& page);

// The shards whose content this server is still being sent.
uint64_t ShardsJoining(const ClusterView& view, NodeId server);

}  // namespace covey::server
