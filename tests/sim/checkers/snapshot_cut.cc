// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/snapshot_cut.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/snapshot/manifest.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format.h"
#include "common/tensor/wire_format_proto.h"
#include "tests/sim/checkers/published_view.h"
#include "tests/sim/checkers/step_rows.h"

namespace covey::sim {
namespace {

// Sequences that a shard remembers of a group at least.
constexpr uint64_t kRemembered = 8;

std::string Where(const ShardHistory& history) {
  return absl::StrCat("table ", history.shard.table.value(), " shard ", history.shard.index.value(),
                      " generation ", history.generation);
}

std::string NameOf(GroupId group, Step step) {
  return absl::StrCat("step ", step.value(), " of group ", group.value());
}

}  // namespace

void SnapshotCut::Complain(const std::string& where, const std::string& what) {
  violations_.Add("snapshot_cut", absl::StrCat(where, ": ", what));
}

void SnapshotCut::OnSend(absl::Time, const Message& message) {
  if (const proto::ClusterView* view = PublishedView(message)) return NoteView(*view);
  elements_.Note(message);
  if (message.envelope.has_push_request()) return NotePush(message);
  if (const auto reply = ReadShardReply(message)) {
    CheckReply(message.envelope.header().epoch(), *reply);
  }
}

void SnapshotCut::NoteView(const proto::ClusterView& view) {
  for (const proto::Group& group : view.groups()) groups_.insert(GroupId(group.id()));
  for (const proto::Node& node : view.nodes()) {
    if (node.state() != proto::Node::ALIVE) departed_.insert(node.id());
  }
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      const auto first = first_generation_.try_emplace(id, shard.generation()).first;
      history_was_lost_ =
          history_was_lost_ || (first->second != shard.generation() && pushes_.contains(id));
    }
  }
}

void SnapshotCut::NotePush(const Message& message) {
  const proto::PushId& id = message.envelope.push_request().id();
  if (id.producer_kind() != proto::PushId::GROUP) return;
  const std::optional<uint64_t> element = ElementOfPush(message);
  if (!element) return;
  const ShardId shard{TableId(id.table()), ShardIndex(id.shard())};
  Push& push = pushes_[shard][{GroupId(static_cast<uint32_t>(id.producer())), Step(id.sequence())}];
  push.element = *element;
  push.senders.insert(message.from().node.value());
}

std::optional<uint64_t> SnapshotCut::ElementOfPush(const Message& message) {
  const proto::PushRequest& push = message.envelope.push_request();
  if (push.has_keys()) return elements_.ElementOf(message);
  if (message.frames.empty()) return std::nullopt;
  std::vector<float> gradient(options_.elements);
  const auto format = WireFormatFromProto(push.format());
  if (!format || message.frames[0].size() != EncodedBytes(*format, gradient.size())) {
    Complain(Where({.shard = {TableId(push.id().table()), ShardIndex(push.id().shard())}}),
             "a gradient of another shape");
    return std::nullopt;
  }
  Decode(*format, message.frames[0].bytes(), gradient);
  const auto own = std::find_if(gradient.begin(), gradient.end(), [](float x) { return x != 0; });
  return static_cast<uint64_t>(own - gradient.begin());
}

absl::StatusOr<StoredShard> SnapshotCut::Read(const SnapshotReader& snapshot,
                                              const ShardEntries& entries) {
  COVEY_ASSIGN_OR_RETURN(StoredShard stored, ReadStoredShard(snapshot, entries));
  const proto::SnapshotShard& entry = entries.newest();
  const proto::Table& table = TableOf(snapshot.manifest(), entry);
  if (!table.spec().has_sparse() || !HasWholeRows(table.spec())) return stored;
  const proto::Shard& shard = table.shards(static_cast<int>(entry.shard()));
  stored.values = ElementsOf(stored.rows, shard, options_.elements);
  if (!stored.row_slots.empty()) {
    stored.slots = {ElementsOf(stored.row_slots, shard, options_.elements)};
  }
  return stored;
}

void SnapshotCut::CheckReply(uint64_t epoch, const ShardReply& reply) {
  if (reply.push != nullptr && reply.push->durable() &&
      reply.push->id().producer_kind() == proto::PushId::GROUP) {
    const GroupStep push{GroupId(static_cast<uint32_t>(reply.push->id().producer())),
                         Step(reply.push->id().sequence())};
    durable_.try_emplace({reply.history, push}, epoch);
  }
  // Those of a sparse table are a few rows.
  if (reply.values.size() != options_.elements || !IsIntact(reply.history)) return;
  const std::string where = absl::StrCat(Where(reply.history), " in a reply");
  CheckBefore(where, reply.history, reply.values);
  for (const auto& [push, sent] : pushes_[reply.history.shard]) {
    const float value = reply.values[sent.element];
    if (value == 0 || IsOnce(value) || !IsOfThisJob(push.first)) continue;
    return Complain(where, absl::StrCat(NameOf(push.first, push.second), " is in with ", value));
  }
}

void SnapshotCut::OnReceived(absl::Time, absl::string_view receiver, const Message& message) {
  const proto::ReplicateRequest& request = message.envelope.replicate_request();
  if (!message.envelope.has_replicate_request() || request.cut() == 0) return;
  const proto::ChainPosition& chain = request.chain();
  const ShardHistory history{{TableId(chain.table()), ShardIndex(chain.shard())},
                             chain.generation()};
  const auto held = look_(receiver, message.to().loop, history.shard);
  // A replica that follows another chain has refused the record.
  if (!held || held->chain_epoch != chain.chain_epoch() || held->index != request.index()) return;
  const auto [known, is_new] = cuts_.try_emplace({history, request.cut()}, held->digest);
  if (is_new || known->second == held->digest) return;
  Complain(Where(history), absl::StrCat("at the cut of snapshot ", request.cut(), " ", receiver,
                                        " does not hold what another replica held"));
}

bool SnapshotCut::IsIntact(const ShardHistory& history) const {
  const auto first = first_generation_.find(history.shard);
  return first != first_generation_.end() && first->second == history.generation;
}

bool SnapshotCut::HasSender(const Push& push) const {
  return std::any_of(push.senders.begin(), push.senders.end(),
                     [this](uint64_t node) { return !departed_.contains(node); });
}

bool SnapshotCut::IsOnce(float value) const { return IsAppliedOnce(value, options_.values); }

void SnapshotCut::Published(Folder& store, const std::string& folder) {
  published_.insert(folder);
  const absl::StatusOr<SnapshotReader> snapshot = SnapshotReader::Open(store, folder);
  if (!snapshot.ok()) return Complain(folder, snapshot.status().ToString());
  for (const ShardEntries& entries : EntriesByShard(snapshot->manifest())) {
    const proto::SnapshotShard& entry = entries.newest();
    const ShardId shard{TableId(entry.table()), ShardIndex(entry.shard())};
    if (!pushes_.contains(shard)) continue;  // of a table that nobody trains
    const auto stored = Read(*snapshot, entries);
    if (!stored.ok()) return Complain(folder, stored.status().ToString());
    CheckShard(snapshot->manifest(), entry, *stored);
  }
}

void SnapshotCut::CheckShard(const proto::SnapshotManifest& manifest,
                             const proto::SnapshotShard& entry, const StoredShard& stored) {
  const ShardHistory history{{TableId(entry.table()), ShardIndex(entry.shard())},
                             entry.generation()};
  const std::string where = absl::StrCat(manifest.folder(), " ", Where(history));
  std::map<GroupId, Step> cut;
  for (const proto::CutStep& last : manifest.groups()) {
    cut.emplace(GroupId(last.group()), Step(last.step()));
  }
  CheckHeld(where, manifest, entry, stored);
  if (stored.values.empty()) return;  // of a sparse table, and not to be told from its rows
  CheckSteps(where, manifest.epoch(), cut, history, stored);
  if (!IsIntact(history)) return;
  CheckBefore(where, history, stored.values);
  CheckRecord(where, cut, history, stored);
  // There each row has the mean of the pushes that hold it, which are not all pushes of an update.
  const bool is_sparse = !stored.rows.empty();
  if (is_sparse &&
      TableOf(manifest, entry).spec().sparse().round_mean() == proto::SparseRows::OF_HOLDERS) {
    return;
  }
  double sum = 0;
  for (const float value : stored.values) sum += value;
  const double version = static_cast<double>(entry.version());
  const double rounding = 0.01 + options_.values.rounding * version;
  if (!options_.values.adaptive && std::fabs(sum - version) > rounding) {
    Complain(where, absl::StrCat("version ", entry.version(), ", and the values sum up to ", sum));
  }
}

void SnapshotCut::CheckHeld(const std::string& where, const proto::SnapshotManifest& manifest,
                            const proto::SnapshotShard& entry, const StoredShard& stored) {
  const ShardHistory history{{TableId(entry.table()), ShardIndex(entry.shard())},
                             entry.generation()};
  // A shard that has not changed is as of the cut of an earlier snapshot; a log ends with its cut.
  const uint64_t stored_by = IsLog(entry)             ? stored.record.last_cut()
                             : entry.folder().empty() ? manifest.id()
                                                      : ParseSnapshotFolderName(entry.folder())->id;
  const auto held = cuts_.find({history, stored_by});
  if (held != cuts_.end() && held->second != stored.record.digest()) {
    Complain(where, "is not what the replicas held at the cut");
  }
}

void SnapshotCut::CheckSteps(const std::string& where, uint64_t ordered_at,
                             const std::map<GroupId, Step>& cut, const ShardHistory& history,
                             const StoredShard& stored) {
  for (const auto& [push, sent] : pushes_[history.shard]) {
    const auto& [group, step] = push;
    if (!IsOfThisJob(group)) continue;
    const float value = stored.values[sent.element];
    const auto last = cut.find(group);
    const bool is_in_cut = last != cut.end() && step <= last->second;
    const auto durable = durable_.find({history, push});
    const bool is_durable = durable != durable_.end();
    const bool is_held = options_.has_common_steps && !cut.empty() && step > cut.begin()->second;
    const bool is_owed_of_ended =
        last == cut.end() && is_durable && durable->second < ordered_at && !is_held;
    const bool is_owed =
        IsIntact(history) && ((is_in_cut && (is_durable || HasSender(sent))) || is_owed_of_ended);
    if (value == 0 ? is_owed : !IsOnce(value)) {
      return Complain(where, absl::StrCat(NameOf(group, step), " is in with ", value));
    }
    if (value != 0 && last != cut.end() && !is_in_cut) {
      return Complain(where, absl::StrCat(NameOf(group, step), " is in, beyond the cut at step ",
                                          last->second.value()));
    }
    const bool has_slot = !stored.slots.empty() && stored.slots[0][sent.element] != 0;
    if (options_.values.adaptive && has_slot != (value != 0)) {
      return Complain(where, absl::StrCat(NameOf(group, step), " is in the ",
                                          has_slot ? "slot" : "values", " only"));
    }
  }
}

void SnapshotCut::CheckRecord(const std::string& where, const std::map<GroupId, Step>& cut,
                              const ShardHistory& history, const StoredShard& stored) {
  std::map<GroupId, Step> clocks;
  for (const proto::GroupClock& clock : stored.record.clocks()) {
    clocks.emplace(GroupId(clock.group()), Step(clock.step()));
  }
  std::set<GroupStep> remembered;
  for (const proto::ProducerRecord& producer : stored.record.producers()) {
    if (producer.kind() != proto::PushId::GROUP) continue;
    for (const uint64_t sequence : producer.sequences()) {
      remembered.insert({GroupId(static_cast<uint32_t>(producer.producer())), Step(sequence)});
    }
  }
  std::map<GroupId, Step> highest;
  for (const auto& [push, sent] : pushes_[history.shard]) {
    const auto last = cut.find(push.first);
    if (last == cut.end() || push.second > last->second || stored.values[sent.element] == 0)
      continue;
    Step& newest = highest[push.first];
    newest = std::max(newest, push.second);
  }
  for (const auto& [group, newest] : highest) {
    if (clocks[group] != newest) {
      Complain(where, absl::StrCat("the clock of group ", group.value(), " says ",
                                   clocks[group].value(), ", the values ", newest.value()));
    }
  }
  for (const auto& [push, sent] : pushes_[history.shard]) {
    const auto newest = highest.find(push.first);
    if (newest == highest.end() || push.second > newest->second ||
        push.second.value() + kRemembered <= newest->second.value()) {
      continue;
    }
    if (remembered.contains(push) || stored.values[sent.element] == 0) continue;
    return Complain(where,
                    absl::StrCat(NameOf(push.first, push.second), " is in, and not remembered"));
  }
}

void SnapshotCut::CheckBefore(const std::string& where, const ShardHistory& history,
                              std::span<const float> values) {
  const auto before = begun_with_.find(history.shard);
  for (const auto& [push, sent] : pushes_[history.shard]) {
    if (IsOfThisJob(push.first)) continue;
    const float expected = before == begun_with_.end() ? 0 : before->second[sent.element];
    if (values[sent.element] == expected) continue;
    return Complain(where,
                    absl::StrCat(NameOf(push.first, push.second), " of an earlier job is in with ",
                                 values[sent.element], " instead of ", expected));
  }
}

void SnapshotCut::Removed(Folder& store, const std::string& folder) {
  published_.erase(folder);
  for (const std::string& complete : published_) {
    const absl::Status status = SnapshotReader::Open(store, complete).status();
    // Of a removal that has failed, the manifest may be gone.
    if (status.ok() || !absl::IsDataLoss(status)) continue;
    Complain(complete,
             absl::StrCat("was complete before the removal of ", folder, ": ", status.ToString()));
  }
}

void SnapshotCut::StartOver(Folder& store, const std::string& folder) {
  for (const std::string& complete : published_) {
    const absl::StatusOr<SnapshotReader> snapshot = SnapshotReader::Open(store, complete);
    absl::Status status = snapshot.status();
    if (status.ok()) {
      status = snapshot->Verify([](uint64_t, uint64_t) { return absl::OkStatus(); });
    }
    // Of the removal of an old one that has failed, the manifest may be gone.
    if (absl::IsNotFound(status) && complete != *published_.rbegin()) continue;
    if (!status.ok()) {
      Complain(complete,
               absl::StrCat("was complete, and is not after a crash: ", status.ToString()));
    }
  }
  groups_.clear();
  first_generation_.clear();
  begun_with_.clear();
  history_was_lost_ = false;
  const absl::StatusOr<SnapshotReader> snapshot = SnapshotReader::Open(store, folder);
  if (!snapshot.ok()) return;
  for (const ShardEntries& entries : EntriesByShard(snapshot->manifest())) {
    const proto::SnapshotShard& entry = *entries.content;
    auto stored = Read(*snapshot, entries);
    if (!stored.ok()) continue;
    begun_with_[{TableId(entry.table()), ShardIndex(entry.shard())}] = std::move(stored->values);
  }
}

}  // namespace covey::sim
