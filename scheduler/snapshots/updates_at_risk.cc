// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/updates_at_risk.h"

#include <algorithm>

namespace covey::scheduler {

void UpdatesAtRisk::OnLoad(NodeId server, const proto::ServerLoad& load) {
  OnDeparture(server);
  std::map<uint32_t, uint64_t>& tables = reported_[server];
  for (const proto::TableAsynchrony& report : load.tables()) {
    tables[report.table()] += report.updates();
    applied_[report.table()] += report.updates();
  }
}

void UpdatesAtRisk::OnDeparture(NodeId server) {
  for (const auto& [table, updates] : reported_[server]) {
    uint64_t& applied = applied_[table];
    applied -= updates;
    if (applied == 0) applied_.erase(table);
  }
  reported_.erase(server);
}

uint64_t UpdatesAtRisk::Count() const {
  std::map<uint32_t, uint64_t> saved;
  const proto::NewestSnapshot& newest = state_.record().newest_snapshot();
  for (int i = 0; i < std::min(newest.tables_size(), newest.updates_size()); ++i) {
    saved[newest.tables(i)] = newest.updates(i);
  }
  uint64_t count = 0;
  for (const proto::Table& table : state_.view().tables()) {
    const auto applied = applied_.find(table.id());
    if (applied == applied_.end()) continue;
    count += applied->second - std::min(applied->second, saved[table.id()]);
  }
  return count;
}

absl::Duration UpdatesAtRisk::Age(absl::Time now) const {
  const proto::NewestSnapshot& newest = state_.record().newest_snapshot();
  if (newest.folder().empty() || Count() == 0) return absl::ZeroDuration();
  if (newest.cut_unix_ms() == 0) return now - started_;
  const auto cut = absl::FromUnixMillis(static_cast<int64_t>(newest.cut_unix_ms()));
  return std::max(absl::ZeroDuration(), now + wall_clock_ahead_ - cut);
}

}  // namespace covey::scheduler
