// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/rows_at_cut.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/snapshot/shard_entries.h"
#include "common/snapshot/snapshot_reader.h"
#include "common/table/key_slots.h"
#include "tests/sim/checkers/published_view.h"
#include "tests/sim/checkers/step_rows.h"
#include "tests/sim/checkers/stored_shard.h"

namespace covey::sim {
namespace {

std::string NameOf(GroupId group, Step step) {
  return absl::StrCat("step ", step.value(), " of group ", group.value());
}

ShardId ShardOf(const proto::SnapshotShard& entry) {
  return {TableId(entry.table()), ShardIndex(entry.shard())};
}

}  // namespace

void RowsAtCut::OnSend(absl::Time, const Message& message) {
  if (const proto::ClusterView* view = PublishedView(message)) {
    for (const proto::Table& table : view->tables()) {
      for (const proto::Shard& shard : table.shards()) {
        first_generation_.try_emplace({TableId(table.id()), ShardIndex(shard.index())},
                                      shard.generation());
      }
    }
    return;
  }
  pushed_elements_.Note(message);
  const auto step_of = [](const proto::PushId& id) {
    return GroupStep(GroupId(static_cast<uint32_t>(id.producer())), Step(id.sequence()));
  };
  if (message.envelope.has_push_request()) {
    const proto::PushRequest& push = message.envelope.push_request();
    if (!push.has_keys() || push.id().producer_kind() != proto::PushId::GROUP) return;
    if (const auto element = pushed_elements_.ElementOf(message))
      elements_[step_of(push.id())] = *element;
    return;
  }
  const auto reply = ReadShardReply(message);
  if (!reply || reply->push == nullptr || !reply->push->durable() ||
      reply->push->applied_version() == 0 ||
      reply->push->id().producer_kind() != proto::PushId::GROUP) {
    return;
  }
  versions_[reply->history][step_of(reply->push->id())] = reply->push->applied_version();
}

void RowsAtCut::Published(Folder& store, const std::string& folder) {
  const auto snapshot = SnapshotReader::Open(store, folder);
  if (!snapshot.ok()) return;
  std::map<GroupId, Step> cut;
  for (const proto::CutStep& last : snapshot->manifest().groups()) {
    cut.emplace(GroupId(last.group()), Step(last.step()));
  }
  for (const ShardEntries& entries : EntriesByShard(snapshot->manifest())) {
    const proto::SnapshotShard& entry = entries.newest();
    const proto::Table& table = TableOf(snapshot->manifest(), entry);
    if (!table.spec().has_sparse()) continue;
    const auto stored = ReadStoredShard(*snapshot, entries);
    if (!stored.ok()) continue;
    Check(folder, table, {ShardOf(entry), entry.generation()}, entry.version(), cut, stored->rows);
  }
}

void RowsAtCut::StartOver(Folder& store, const std::string& folder) {
  std::map<ShardId, std::map<GroupStep, uint64_t>> begins_with;
  if (const auto snapshot = SnapshotReader::Open(store, folder); snapshot.ok()) {
    for (const ShardEntries& entries : EntriesByShard(snapshot->manifest())) {
      const proto::SnapshotShard& entry = entries.newest();
      for (const auto& [step, version] : versions_[{ShardOf(entry), entry.generation()}]) {
        if (version <= entry.version()) begins_with[ShardOf(entry)][step] = version;
      }
    }
  }
  begun_with_ = std::move(begins_with);
  first_generation_.clear();
}

RowsAtCut::PushesOfShard RowsAtCut::PushesOf(const proto::Shard& shard,
                                             const ShardHistory& history) const {
  std::map<GroupStep, uint64_t> versions;
  const auto first = first_generation_.find(history.shard);
  if (first != first_generation_.end() && first->second == history.generation) {
    if (const auto begun = begun_with_.find(history.shard); begun != begun_with_.end()) {
      versions = begun->second;
    }
  }
  if (const auto known = versions_.find(history); known != versions_.end()) {
    for (const auto& [step, version] : known->second) versions[step] = version;
  }
  PushesOfShard found;
  const std::vector<uint64_t> home = HomeKeysOf(shard);
  for (const auto& [step, element] : elements_) {
    const auto version = versions.find(step);
    const Pushed push{.step = step,
                      .column = ColumnOf(element),
                      .version = version == versions.end() ? 0 : version->second};
    found.pushes.Add(push.version);
    for (const uint64_t key : FurtherKeysOfStep(element)) found.by_key[key].push_back(push);
    found.by_key[home[element % kRowClasses]].push_back(push);
  }
  return found;
}

void RowsAtCut::Check(const std::string& where, const proto::Table& table,
                      const ShardHistory& history, uint64_t version,
                      const std::map<GroupId, Step>& cut, const Rows& rows) {
  const proto::Shard& shard = table.shards(static_cast<int>(history.shard.index.value()));
  const std::vector<float> no_row(kRowColumns);
  const auto complain = [&](uint64_t key, const std::string& why) {
    violations_.Add("rows_at_cut", absl::StrCat(where, ", shard ", history.shard.index.value(),
                                                ", the row of key ", key, ": ", why));
  };
  const auto& [of_shard, by_key] = PushesOf(shard, history);
  for (const auto& [key, pushes] : by_key) {
    const auto row = rows.find(key);
    const uint64_t slot = SlotOfKey(key);
    if (slot - shard.first_element() >= shard.element_count()) continue;
    ++checked_;
    const std::string why = WhyWrong(table.spec(), version, cut, of_shard, pushes,
                                     row == rows.end() ? no_row : row->second);
    if (!why.empty()) return complain(key, why);
  }
  for (const auto& [key, row] : rows) {
    if (!by_key.contains(key)) return complain(key, "nobody pushed it");
  }
}

std::string RowsAtCut::WhyWrong(const proto::TableSpec& spec, uint64_t version,
                                const std::map<GroupId, Step>& cut, const Pushes& of_shard,
                                const std::vector<Pushed>& pushes,
                                const std::vector<float>& row) const {
  uint64_t first_held = std::numeric_limits<uint64_t>::max();
  uint64_t newest_missing = 0;
  std::set<uint64_t> missing;  // versions
  std::vector<float> others = row;
  for (const Pushed& push : pushes) {
    const auto& [group, step] = push.step;
    const float value = std::exchange(others[push.column], 0);
    const auto last = cut.find(group);
    if (value == 0) {
      if (push.version == 0 || push.version > version) continue;
      missing.insert(push.version);
      newest_missing = std::max(newest_missing, push.version);
      continue;
    }
    if (!IsAppliedOnce(value, values_)) {
      return absl::StrCat(NameOf(group, step), " is in with ", value);
    }
    if (last != cut.end() && step > last->second) {
      return absl::StrCat(NameOf(group, step), " is in, beyond the cut at step ",
                          last->second.value());
    }
    if (push.version > version) {
      return absl::StrCat(NameOf(group, step), " of version ", push.version, " is in at version ",
                          version);
    }
    if (push.version > 0) first_held = std::min(first_held, push.version);
  }
  if (std::any_of(others.begin(), others.end(), [](float x) { return x != 0; })) {
    return "it holds a push without its key";
  }
  if (newest_missing >= first_held) {
    return absl::StrCat("it holds the push of version ", first_held, ", and lacks that of version ",
                        newest_missing);
  }
  if (!values_.adaptive) {
    Pushes holding;
    for (const Pushed& push : pushes) {
      if (row[push.column] != 0) holding.Add(push.version);
    }
    const bool is_of_holders = spec.sparse().round_mean() == proto::SparseRows::OF_HOLDERS;
    const std::string why = WhyWrongShare(is_of_holders ? holding : of_shard, pushes, row);
    if (!why.empty()) return why;
  }
  const proto::SparseRows& life_cycle = spec.sparse();
  const bool by_count_only = life_cycle.rows_max() == 0 && life_cycle.admit_probability() == 0;
  if (by_count_only && missing.size() >= std::max<uint64_t>(life_cycle.admit_after(), 1)) {
    return absl::StrCat("it lacks the pushes of ", missing.size(),
                        " versions, and is to be made by update ", life_cycle.admit_after());
  }
  return "";
}

std::string RowsAtCut::WhyWrongShare(const Pushes& sharing, const std::vector<Pushed>& pushes,
                                     const std::vector<float>& row) {
  for (const Pushed& push : pushes) {
    const float value = row[push.column];
    if (value == 0) continue;
    const bool is_known = push.version > 0;
    const size_t certain = is_known ? sharing.of_version.at(push.version) : 0;
    const size_t possible = is_known ? certain + sharing.unknown : sharing.all;
    const auto parts = static_cast<size_t>(std::lround(1 / value));
    if (parts >= certain && parts <= possible) continue;
    return absl::StrCat(NameOf(push.step.first, push.step.second), " is in with a share of 1 of ",
                        parts, ", and ", certain, " to ", possible,
                        " pushes of its update share the row");
  }
  return "";
}

}  // namespace covey::sim
