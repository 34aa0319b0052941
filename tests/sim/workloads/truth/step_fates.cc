// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/truth/step_fates.h"

#include "absl/strings/str_cat.h"
#include "tests/sim/workloads/truth/reply_description.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {

void StepFates::NoteView(const proto::ClusterView& view) {
  for (const proto::Node& node : view.nodes()) {
    if (node.state() != proto::Node::ALIVE) departed_.insert(node.id());
  }
  for (const proto::Group& group : view.groups()) {
    formed_.try_emplace(GroupId(group.id()), view.epoch());
  }
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      created_.try_emplace(id, shard.generation());
      const auto first = first_generation_.find(id);
      history_was_lost_ = history_was_lost_ ||
                          (first != first_generation_.end() && first->second < shard.generation());
    }
  }
}

void StepFates::NotePushReply(const Message& message, const ShardReply& reply) {
  const proto::PushId& id = reply.push->id();
  const GroupId group(static_cast<uint32_t>(id.producer()));
  const Step step(id.sequence());
  const std::pair<ShardId, GroupStep> push{reply.history.shard, {group, step}};
  acknowledged_[push].insert(reply.history.generation);
  if (reply.push->durable()) {
    undurable_[push] = 0;
  } else {
    undurable_.try_emplace(push, message.to().node.value());
  }
  if (reply.push->discarded()) {
    discarded_[{reply.history, group}].insert(step);
  } else if (presumed_discarded_[{reply.history, group}].count(step) > 0) {
    violations_.Add(kStaleness, absl::StrCat(Describe(reply), ": step ", step.value(), " of group ",
                                             group.value(),
                                             " is said to be applied, but readers were "
                                             "given values without it"));
  }
  first_generation_.try_emplace(reply.history.shard, reply.history.generation);
}

bool StepFates::IsOwed(const ShardHistory& history, GroupId group, Step step) const {
  if (given_up_.count({group, step}) > 0) return false;
  if (!HasGradient(history.shard.table, group, step)) return false;
  const auto discarded = discarded_.find({history, group});
  if (discarded != discarded_.end() && discarded->second.count(step) > 0) return false;
  const auto undurable = undurable_.find({history.shard, {group, step}});
  if (undurable != undurable_.end() && departed_.count(undurable->second) > 0) return false;
  const auto found = acknowledged_.find({history.shard, {group, step}});
  if (found == acknowledged_.end()) return true;
  return *found->second.begin() >= history.generation;
}

bool StepFates::HasLost(const ShardHistory& history, GroupId group) const {
  const auto created = created_.find(history.shard);
  const auto formed = formed_.find(group);
  return created != created_.end() && created->second < history.generation &&
         formed != formed_.end() && formed->second < history.generation;
}

bool StepFates::MayBeDiscarded(const ShardHistory& history, GroupId group, Step step,
                               Presumed& presumed) const {
  if (!options_.discards) return false;
  const auto discarded = discarded_.find({history, group});
  if (discarded != discarded_.end() && discarded->second.count(step) > 0) return true;
  const auto acknowledged = acknowledged_.find({history.shard, {group, step}});
  if (acknowledged != acknowledged_.end() && acknowledged->second.count(history.generation) > 0) {
    return false;
  }
  presumed.emplace_back(group, step);
  return true;
}

void StepFates::Presume(const ShardHistory& history, const Presumed& presumed) {
  for (const auto& [group, step] : presumed) presumed_discarded_[{history, group}].insert(step);
}

}  // namespace covey::sim
