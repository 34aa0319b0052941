// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/rare_events.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/published_view.h"

namespace covey::sim {
namespace {

// One line: the live nodes and the shards that each holds.
std::string Describe(const proto::ClusterView& view) {
  std::string text = absl::StrCat("view ", view.epoch(), ":");
  for (const proto::Node& node : view.nodes()) {
    if (node.state() != proto::Node::ALIVE || node.role() == proto::CLIENT) continue;
    absl::StrAppend(&text, " ", node.name(), "=", node.id(), node.draining() ? "(draining)" : "");
  }
  for (const proto::Group& group : view.groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    absl::StrAppend(&text, " group ", group.id(), "/", group.generation(), "(");
    for (const uint64_t member : group.members()) absl::StrAppend(&text, " ", member);
    absl::StrAppend(&text, " )");
  }
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      absl::StrAppend(&text, " ", table.spec().name(), "[", shard.index(), "]/", shard.generation(),
                      "/", shard.chain_epoch(), "(");
      for (const proto::Replica& replica : shard.chain()) {
        absl::StrAppend(&text, " ", replica.node(), replica.joining() ? "?" : "");
      }
      absl::StrAppend(&text, " )");
    }
  }
  return text;
}

}  // namespace

void RareEvents::OnSend(absl::Time, const Message& message) {
  if (const proto::ClusterView* view = PublishedView(message)) return NoteView(*view);
  const proto::Envelope& envelope = message.envelope;
  if (envelope.work_reply().return_untrained()) simulator_.Count("examples_recalled");
  if (!envelope.has_push_reply() && !envelope.has_pull_reply()) return;
  const absl::Status status = StatusOf(message);
  if (!status.ok()) {
    simulator_.Count(absl::StrCat("shard_refused_",
                                  absl::AsciiStrToLower(absl::StatusCodeToString(status.code()))));
  } else if (envelope.has_push_reply()) {
    if (envelope.push_reply().duplicate()) simulator_.Count("push_repeated");
    if (envelope.push_reply().applied_version() == 0) simulator_.Count("push_held");
  }
}

void RareEvents::NoteView(const proto::ClusterView& view) {
  if (view.epoch() <= epoch_) return;
  epoch_ = view.epoch();
  if (simulator_.tracing()) simulator_.Trace(Describe(view));
  for (const proto::Node& node : view.nodes()) {
    if (std::exchange(node_states_[node.id()], node.state()) == node.state()) continue;
    if (node.state() == proto::Node::DEAD) simulator_.Count("node_declared_dead");
    if (node.state() == proto::Node::LEFT) simulator_.Count("node_left");
  }
  for (const proto::Group& group : view.groups()) {
    if (std::exchange(group_states_[group.id()], group.state()) == group.state()) continue;
    if (group.state() == proto::Group::BROKEN) simulator_.Count("group_broke");
    if (group.state() == proto::Group::DONE) simulator_.Count("group_done");
  }
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      const uint64_t before =
          std::exchange(generations_[{table.id(), shard.index()}], shard.generation());
      if (before != 0 && before != shard.generation()) simulator_.Count("shard_lost");
    }
  }
}

}  // namespace covey::sim
