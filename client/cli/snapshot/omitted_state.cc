// SPDX-License-Identifier: Apache-2.0
#include "client/cli/snapshot/omitted_state.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/contract/contract.h"
#include "common/snapshot/manifest.h"
#include "common/snapshot/shard_entries.h"

namespace covey::cli {
namespace {

// Whether error feedback had been flushed in the last step of every group, ended ones included.
bool IsFlushed(const proto::SnapshotManifest& manifest) {
  const uint64_t every = manifest.state().view().feedback_flush_steps();
  const auto flushes = [every](uint64_t step) { return every != 0 && step % every == 0; };
  const std::vector<ShardEntries> shards = EntriesByShard(manifest);
  return std::all_of(manifest.groups().begin(), manifest.groups().end(),
                     [&](const proto::CutStep& last) { return flushes(last.step()); }) &&
         std::all_of(shards.begin(), shards.end(), [&](const ShardEntries& shard) {
           return flushes(shard.newest().last_step());
         });
}

void AddIfAny(const char* what, std::vector<std::string> tables, std::vector<std::string>& all) {
  if (tables.empty()) return;
  all.push_back(absl::StrCat(what, " (", absl::StrJoin(tables, ", "), ")"));
}

}  // namespace

std::vector<std::string> OmittedState(const proto::SnapshotManifest& manifest) {
  std::vector<std::string> omitted;
  if (IsImported(manifest)) return omitted;
  std::vector<std::string> local;
  std::vector<std::string> lossy;
  for (const proto::Table& table : manifest.state().view().tables()) {
    const absl::StatusOr<Contract> contract = ContractInForce(table);
    const bool is_local = contract.ok() && contract->kind == Contract::Kind::kLocal;
    const bool is_lossy = table.spec().gradient_format() != proto::WIRE_FLOAT32;
    if (is_local) local.push_back(table.spec().name());
    // Under local, nothing flushes.
    if (is_lossy && (is_local || !IsFlushed(manifest))) lossy.push_back(table.spec().name());
  }
  AddIfAny("the state of inner optimizers, which workers hold", std::move(local), omitted);
  AddIfAny("rounding errors that workers keep for their next gradients", std::move(lossy), omitted);
  return omitted;
}

}  // namespace covey::cli
