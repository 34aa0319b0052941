// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/container/btree_map.h"
#include "proto/scheduler.pb.h"

namespace covey {

// Reports of several shards, loops or servers about the rows of sparse tables, by table.
using RowsByTable = absl::btree_map<uint32_t, proto::TableRows>;

inline void AddRows(const proto::TableRows& report, RowsByTable& tables) {
  proto::TableRows& sum = tables[report.table()];
  sum.set_table(report.table());
  sum.set_rows(sum.rows() + report.rows());
  sum.set_pending(sum.pending() + report.pending());
  sum.set_evicted(sum.evicted() + report.evicted());
  sum.set_refused(sum.refused() + report.refused());
  sum.set_bytes(sum.bytes() + report.bytes());
}

}  // namespace covey
