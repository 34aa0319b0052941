// SPDX-License-Identifier: Apache-2.0
#include "server/server_load.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/cluster/limits.h"

namespace covey::server {

proto::ServerLoad LoadOf(const ShardCounters& counters) {
  proto::ServerLoad load;
  load.set_pushes(counters.pushes);
  load.set_pulls(counters.pulls);
  load.set_duplicates(counters.duplicates);
  load.set_malformed(counters.malformed + counters.impostors);
  load.set_refused(counters.refused);
  load.set_replicated(counters.replicated);
  load.set_content_bytes(counters.content_bytes);
  load.set_unfit_replicas(counters.unfit_replicas);
  return load;
}

void ServerLoadSum::Add(const proto::ServerLoad& load) {
  sum_.set_table_bytes(sum_.table_bytes() + load.table_bytes());
  sum_.set_pushes(sum_.pushes() + load.pushes());
  sum_.set_pulls(sum_.pulls() + load.pulls());
  sum_.set_duplicates(sum_.duplicates() + load.duplicates());
  sum_.set_malformed(sum_.malformed() + load.malformed());
  sum_.set_replica_bytes(sum_.replica_bytes() + load.replica_bytes());
  sum_.set_queued_bytes(sum_.queued_bytes() + load.queued_bytes());
  sum_.set_refused(sum_.refused() + load.refused());
  sum_.set_replicated(sum_.replicated() + load.replicated());
  sum_.set_content_bytes(sum_.content_bytes() + load.content_bytes());
  sum_.set_unfit_replicas(sum_.unfit_replicas() + load.unfit_replicas());
  for (const proto::TableAsynchrony& report : load.tables()) AddAsynchrony(report, tables_);
  for (const proto::TableRows& report : load.rows()) AddRows(report, rows_);
  gated_.insert(gated_.end(), load.gated().begin(), load.gated().end());
}

proto::ServerLoad ServerLoadSum::Take() {
  for (auto& [table, report] : tables_) *sum_.add_tables() = std::move(report);
  for (auto& [table, report] : rows_) *sum_.add_rows() = std::move(report);
  // Of equal ones in the order of their shards, so that a report does not depend on that of loops.
  std::sort(gated_.begin(), gated_.end(), [](const auto& a, const auto& b) {
    return std::tuple(b.beyond_in_row(), a.table(), a.shard(), a.is_group(), a.id()) <
           std::tuple(a.beyond_in_row(), b.table(), b.shard(), b.is_group(), b.id());
  });
  gated_.resize(std::min(gated_.size(), kGatedProducersToldMax));
  for (proto::GatedProducer& gated : gated_) *sum_.add_gated() = std::move(gated);
  return std::move(sum_);
}

}  // namespace covey::server
