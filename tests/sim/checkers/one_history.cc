// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/one_history.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/published_view.h"

namespace covey::sim {

void OneHistory::OnSend(absl::Time, const Message& message) {
  CheckReceiver(message);
  if (const proto::ClusterView* view = PublishedView(message)) return CheckView(*view);
  if (const auto reply = ReadShardReply(message)) CheckVersion(*reply);
}

void OneHistory::StartOver(const proto::SnapshotManifest& manifest) {
  before_ = seen_;
  tables_.clear();
  versions_.clear();
  first_generation_.clear();
  steps_before_ = 0;
  for (const proto::Table& table : manifest.state().view().tables()) tables_.insert(table.id());
  for (const proto::SnapshotShard& shard : manifest.shards()) {
    versions_[{TableId(shard.table()), ShardIndex(shard.shard())}] = shard.version();
  }
  for (const proto::CutStep& last : manifest.groups()) {
    steps_before_ = std::max<uint64_t>(steps_before_, last.step());
  }
}

void OneHistory::CheckAbove(uint64_t epoch, absl::string_view what, uint64_t number,
                            uint64_t before) {
  if (number > before) return;
  violations_.Add("one_history", absl::StrCat("epoch ", epoch, " has ", what, " ", number,
                                              ", and an earlier job had ", before));
}

void OneHistory::CheckView(const proto::ClusterView& view) {
  const uint64_t epoch = view.epoch();
  CheckAbove(epoch, "epoch", epoch, before_.epoch);
  seen_.epoch = std::max<uint64_t>(seen_.epoch, epoch);
  for (const proto::Node& node : view.nodes()) {
    CheckAbove(epoch, "node", node.id(), before_.node);
    seen_.node = std::max<uint64_t>(seen_.node, node.id());
  }
  for (const proto::Group& group : view.groups()) {
    CheckAbove(epoch, "group", group.id(), before_.group);
    seen_.group = std::max<uint32_t>(seen_.group, group.id());
    if (steps_before_ == 0) continue;
    CheckAbove(epoch, "a group that begins with step", group.first_step(), steps_before_);
  }
  for (const proto::Table& table : view.tables()) {
    if (!tables_.contains(table.id())) {
      CheckAbove(epoch, "table", table.id(), before_.table);
    }
    seen_.table = std::max<uint32_t>(seen_.table, table.id());
    for (const proto::Shard& shard : table.shards()) {
      CheckAbove(epoch, "a shard of generation", shard.generation(), before_.epoch);
      first_generation_.try_emplace({TableId(table.id()), ShardIndex(shard.index())},
                                    shard.generation());
    }
  }
}

void OneHistory::CheckReceiver(const Message& message) {
  const uint64_t receiver = message.to().node.value();
  const uint64_t sender = message.from().node.value();
  const bool is_reply = message.envelope.has_heartbeat_reply() ||
                        message.envelope.has_work_reply() ||
                        message.envelope.has_watch_view_reply() ||
                        message.envelope.has_push_reply() || message.envelope.has_pull_reply();
  const bool is_of_earlier_job = receiver > kSchedulerNode.value() && receiver <= before_.node;
  const bool answers = sender == kSchedulerNode.value() || sender > before_.node;
  if (!is_reply || !is_of_earlier_job || !answers || !StatusOf(message).ok()) return;
  violations_.Add("one_history", absl::StrCat("node ", sender, " serves node ", receiver,
                                              " of an earlier job: ", BodyName(message.envelope)));
}

void OneHistory::CheckVersion(const ShardReply& reply) {
  const auto floor = versions_.find(reply.history.shard);
  const auto first = first_generation_.find(reply.history.shard);
  const bool is_intact =
      first != first_generation_.end() && first->second == reply.history.generation;
  if (!is_intact || floor == versions_.end() || reply.state->version() >= floor->second) return;
  violations_.Add("one_history",
                  absl::StrCat("table ", reply.history.shard.table.value(), " shard ",
                               reply.history.shard.index.value(), " is at version ",
                               reply.state->version(), ", and began with ", floor->second));
}

}  // namespace covey::sim
