// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/table_restores.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/view.h"
#include "common/snapshot/manifest.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

proto::Table ToRestore(const proto::Table& before, const std::string& name,
                       const std::string& folder, uint64_t restore) {
  proto::Table table;
  *table.mutable_spec() = before.spec();
  table.mutable_spec()->set_name(name);
  if (before.has_contract()) *table.mutable_contract() = before.contract();
  *table.mutable_shards() = before.shards();
  proto::TableOrigin& origin = *table.mutable_origin();
  origin.set_folder(folder);
  origin.set_table(before.spec().name());
  origin.set_takes(proto::TableOrigin::STATE);
  table.set_restore(restore);
  return table;
}

}  // namespace

absl::StatusOr<std::vector<proto::Table>> TablesToRestore(
    const proto::RestoreTablesRequest& request, const proto::SnapshotManifest& manifest,
    uint64_t restore) {
  const std::string& folder = manifest.folder();
  if (IsImported(manifest)) {
    return absl::InvalidArgumentError(absl::StrCat(
        folder, " holds imported values, and no optimizer and its state; only a new job can begin ",
        "with them: --initial-values ", folder));
  }
  std::map<std::string, const proto::Table*> all;
  for (const proto::Table& table : manifest.state().view().tables()) {
    all[table.spec().name()] = &table;
  }
  if (all.empty()) return absl::NotFoundError(absl::StrCat(folder, " has no tables"));
  std::map<std::string, const proto::Table*> wanted;  // by name in the job
  for (const proto::RestoredTable& named : request.tables()) {
    const auto table = all.find(named.name());
    if (table == all.end()) {
      return absl::NotFoundError(absl::StrCat(folder, " has no table '", named.name(),
                                              "'; covey snapshot show ", folder,
                                              " lists its tables"));
    }
    const std::string& name = named.new_name().empty() ? named.name() : named.new_name();
    if (!wanted.emplace(name, table->second).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("two tables are to be named '", name, "'; give each a name of its own"));
    }
  }
  std::vector<proto::Table> tables;
  for (const auto& [name, before] : request.tables().empty() ? all : wanted) {
    tables.push_back(ToRestore(*before, name, folder, restore));
  }
  return tables;
}

void TableRestores::Start(absl::Time now) {
  for (const proto::Table& table : state_.view().tables()) {
    if (table.restore() == 0) continue;
    status_.set_id(table.restore());
    status_.set_folder(table.origin().folder());
    status_.set_state(proto::RestoreStatus::LOADING);
    status_.add_tables(table.spec().name());
  }
  since_ = last_progress_ = now;
}

absl::StatusOr<uint64_t> TableRestores::Begin(absl::Time now,
                                              const proto::RestoreTablesRequest& request) {
  if (!has_store_) {
    return absl::FailedPreconditionError(
        "restore: this job has no store; start its scheduler and servers with --store DIR");
  }
  proto::RestoreTablesRequest wanted = request;
  wanted.clear_header();
  if (IsUnderWay()) {
    if (wanted.SerializeAsString() == request_.SerializeAsString()) return status_.id();
    return absl::FailedPreconditionError(
        "restore: other tables are being restored already; wait until that has ended, as covey "
        "status says");
  }
  COVEY_RETURN_IF_ERROR(search_.Begin(request.snapshot()));
  request_ = std::move(wanted);
  const uint64_t id = std::max(status_.id() + 1, state_.epoch().value());
  status_.Clear();
  status_.set_id(id);
  status_.set_state(proto::RestoreStatus::READING);
  loaded_.clear();
  since_ = last_progress_ = now;
  return id;
}

bool TableRestores::OnStoreReply(absl::Time now, const Message& reply) {
  ManifestSearch::Result manifest;
  if (!search_.OnStoreReply(reply, manifest)) return false;
  if (manifest) OnManifest(now, *manifest);
  return true;
}

void TableRestores::OnManifest(absl::Time now,
                               const absl::StatusOr<proto::SnapshotManifest>& manifest) {
  if (!manifest.ok()) return End(now, manifest.status());
  if (is_going_(manifest->folder())) {
    return End(now, absl::NotFoundError(absl::StrCat(
                        manifest->folder(),
                        " is being removed, because newer ones are complete; restore one of these, "
                        "or start the scheduler with a larger --snapshots-kept")));
  }
  status_.set_folder(manifest->folder());
  const auto tables = TablesToRestore(request_, *manifest, status_.id());
  if (!tables.ok()) return End(now, tables.status());
  if (const absl::Status placed = tables_.Restore(*tables); !placed.ok()) return End(now, placed);
  for (const proto::Table& table : *tables) status_.add_tables(table.spec().name());
  status_.set_state(proto::RestoreStatus::LOADING);
  last_progress_ = now;
  Count(now);
}

void TableRestores::OnReports(absl::Time now, const proto::ReplicaReportRequest& request) {
  for (const proto::ReplicaReport& report : request.reports()) {
    if (!IsLoading()) return;
    const auto& tables = state_.view().tables();
    const auto table =
        std::find_if(tables.begin(), tables.end(), [&](const proto::Table& candidate) {
          return candidate.id() == report.table() && candidate.restore() == status_.id();
        });
    if (table == tables.end() || report.shard() >= static_cast<uint32_t>(table->shards_size()) ||
        table->shards(static_cast<int>(report.shard())).generation() != report.generation()) {
      continue;
    }
    if (report.kind() == proto::ReplicaReport::UNFIT) {
      return End(
          now, absl::AbortedError(absl::StrCat(NameOf(state_.view(), NodeId(report.node())),
                                               " cannot load table '", table->spec().name(),
                                               "' shard ", report.shard(), ": ", report.reason())));
    }
    if (report.kind() != proto::ReplicaReport::LOADED) continue;
    const Loaded replica(report.table(), report.shard(), report.generation(), report.node());
    if (loaded_.insert(replica).second) last_progress_ = now;
  }
  Count(now);
}

void TableRestores::Count(absl::Time now) {
  if (!IsLoading()) return;
  uint32_t shards = 0;
  uint32_t done = 0;
  for (const proto::Table& table : state_.view().tables()) {
    if (table.restore() != status_.id()) continue;
    for (const proto::Shard& shard : table.shards()) {
      ++shards;
      const bool is_loaded = std::all_of(
          shard.chain().begin(), shard.chain().end(), [&](const proto::Replica& replica) {
            return replica.joining() || loaded_.contains({table.id(), shard.index(),
                                                          shard.generation(), replica.node()});
          });
      if (is_loaded) ++done;
    }
  }
  status_.set_shards(shards);
  status_.set_shards_loaded(done);
  if (shards == 0) return End(now, absl::AbortedError("its tables were dropped meanwhile"));
  if (done == shards) End(now, absl::OkStatus());
}

void TableRestores::End(absl::Time now, const absl::Status& outcome) {
  search_.Cancel();
  if (IsLoading()) tables_.EndRestore(status_.id(), outcome);
  status_.set_state(outcome.ok() ? proto::RestoreStatus::COMPLETE : proto::RestoreStatus::FAILED);
  status_.set_reason(std::string(outcome.message()));
  status_.set_took_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(now - since_)));
}

void TableRestores::Tick(absl::Time now) {
  Count(now);
  if (now < NextTick()) return;
  const std::string stalled = absl::StrCat(" for ", absl::FormatDuration(kStallMax));
  End(now, absl::DeadlineExceededError(
               IsLoading() ? absl::StrCat("no further shard was loaded", stalled, "; ",
                                          status_.shards_loaded(), " of ", status_.shards(),
                                          " are. The servers' logs say why (shard_not_opened)")
                           : absl::StrCat("the scheduler's store has not answered", stalled)));
}

absl::Time TableRestores::NextTick() const {
  return IsUnderWay() ? last_progress_ + kStallMax : absl::InfiniteFuture();
}

void TableRestores::FillStatus(absl::Time now, proto::StatusReply& reply) const {
  if (status_.id() == 0) return;
  proto::RestoreStatus& status = *reply.mutable_restore();
  status = status_;
  if (!IsUnderWay()) return;
  status.set_took_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(now - since_)));
}

}  // namespace covey::scheduler
