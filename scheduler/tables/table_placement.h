// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
#include "proto/view.pb.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/state/job_spec.h"

namespace covey::scheduler {

// How a table is cut into shards.
struct TableCut {
  uint64_t elements = 0;
  uint64_t shard_bytes = 0;

  // As the table is cut already. Precondition: it has shards.
  static TableCut Of(const proto::Table& table);
};

// The data loops that new shards may go to: those of draining servers only when there are no
// others.
size_t LoopsForShards(const proto::ClusterView& view);

// Whether the servers that there are may hold a new table. UNAVAILABLE: no server is alive.
// INVALID_ARGUMENT: it has one replica, and the job is replicated. FAILED_PRECONDITION: the spec or
// the job asks for more replicas than there are servers. Pure.
absl::Status CheckServersFor(const JobSpec& job, const proto::TableSpec& spec,
                             const proto::ClusterView& view);

// Whether the job may have so many more tables and shards. RESOURCE_EXHAUSTED. Pure.
absl::Status CheckTableLimits(const proto::ClusterView& view, size_t tables, uint64_t shards);

// What a server says of its load (Membership::LoadOf); null = nothing is known of it.
using LoadOf = std::function<const proto::ServerLoad*(NodeId server)>;

// Whether the servers that new shards may go to have memory for a table: `bytes` of values and
// optimizer state, in all of its replicas. Always, while one of these servers does not say how much
// its tables may take. RESOURCE_EXHAUSTED. Pure.
absl::Status CheckMemory(uint64_t bytes, const proto::ClusterView& view, const LoadOf& load_of);

// Adds a table to the view, which has no shards yet. Spreads their heads over the data loops of all
// ALIVE servers (PlaceShards), and their replicas over other servers: those on other hosts first,
// then on other racks, as far as labels name them, then those with the fewest bytes. `view` is the
// view that `change` edits. Precondition: some server is ALIVE.
proto::Table& PlaceTable(proto::Table table, const TableCut& cut, const proto::ClusterView& view,
                         Transaction& change);

}  // namespace covey::scheduler
