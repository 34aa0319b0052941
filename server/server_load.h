// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "common/contract/momentum_governor.h"
#include "common/table/row_reports.h"
#include "proto/scheduler.pb.h"
#include "server/replication/shard_counters.h"

namespace covey::server {

// The part of a loop's load that its counters contain.
proto::ServerLoad LoadOf(const ShardCounters& counters);

// Adds up loads: those of shards to the load of their loop, and those of loops to the load of the
// server. The reports of one table are merged; they come in growing order of table. Of the
// producers with pushes beyond gates those remain that have the most in a row.
//
// Not thread-safe.
class ServerLoadSum {
 public:
  void Add(const proto::ServerLoad& load);
  // Returns the sum; the object must not be used afterwards.
  proto::ServerLoad Take();

 private:
  proto::ServerLoad sum_;
  AsynchronyByTable tables_;
  RowsByTable rows_;
  std::vector<proto::GatedProducer> gated_;
};

}  // namespace covey::server
