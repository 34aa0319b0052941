// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/kept_content.h"

#include "absl/strings/match.h"
#include "tests/sim/checkers/published_view.h"

namespace covey::sim {

void KeptContent::OnSend(absl::Time, const Message& message) {
  if (message.envelope.has_replica_report_request()) return NoteReports(message);
  const proto::ClusterView* view = PublishedView(message);
  if (view == nullptr || view->epoch() <= epoch_) return;
  saw_last_ = view->epoch() == epoch_ + 1;
  epoch_ = view->epoch();
  std::set<uint32_t> tables;
  for (const proto::Table& table : view->tables()) tables.insert(table.id());
  std::erase_if(holders_, [&tables](const auto& shard) {
    return tables.count(shard.first.table.value()) == 0;
  });
  CheckNodes(*view);
  for (const proto::Table& table : view->tables()) {
    for (const proto::Shard& shard : table.shards()) {
      CheckShard(epoch_, {TableId(table.id()), ShardIndex(shard.index())}, shard);
    }
  }
}

void KeptContent::NoteReports(const Message& message) {
  for (const proto::ReplicaReport& report : message.envelope.replica_report_request().reports()) {
    if (report.kind() != proto::ReplicaReport::READY &&
        report.kind() != proto::ReplicaReport::UNFIT) {
      continue;
    }
    const ShardHistory history{{TableId(report.table()), ShardIndex(report.shard())},
                               report.generation()};
    const bool is_ready = report.kind() == proto::ReplicaReport::READY;
    (is_ready ? ready_ : unfit_).insert({history, report.node()});
  }
}

void KeptContent::CheckNodes(const proto::ClusterView& view) {
  for (const proto::Node& node : view.nodes()) {
    const int before = std::exchange(node_states_[node.id()], node.state());
    if (node.state() != proto::Node::LEFT || before == proto::Node::LEFT) continue;
    if (!absl::EndsWith(node.departure(), "drained")) undrained_.insert(node.id());
    if (!saw_last_ || undrained_.contains(node.id())) continue;
    for (const auto& [id, holders] : holders_) {
      if (holders.joined.count(node.id()) == 0) continue;
      violations_.Add("kept_content", absl::StrCat("epoch ", epoch_, ": ", node.name(),
                                                   " left while it held table ", id.table.value(),
                                                   " shard ", id.index.value()));
    }
  }
}

void KeptContent::CheckShard(uint64_t epoch, ShardId id, const proto::Shard& shard) {
  Holders& holders = holders_[id];
  const bool is_first = holders.generation == 0;
  const bool was_lost = !is_first && holders.generation != shard.generation();
  const auto complain = [&](uint64_t node, absl::string_view what) {
    violations_.Add("kept_content", absl::StrCat("epoch ", epoch, ": table ", id.table.value(),
                                                 " shard ", id.index.value(), " generation ",
                                                 shard.generation(), ": node ", node, what));
  };
  if (was_lost) ++lost_;
  for (const uint64_t node : holders.joined) {
    if (!was_lost || !saw_last_ || node_states_[node] == proto::Node::DEAD) continue;
    if (undrained_.contains(node)) continue;
    const bool was_unreadable =
        !shard.origin().empty() && unfit_.contains({{id, holders.generation}, node});
    if (was_unreadable) continue;
    complain(node, absl::StrCat(" had joined generation ", holders.generation,
                                " and is not dead, but its content was given up"));
  }
  Holders now{.generation = shard.generation()};
  for (const proto::Replica& replica : shard.chain()) {
    (replica.joining() ? now.joining : now.joined).insert(replica.node());
    const bool has_joined =
        !replica.joining() && !is_first && !was_lost && holders.joined.count(replica.node()) == 0;
    if (has_joined && ready_.count({{id, shard.generation()}, replica.node()}) == 0) {
      complain(replica.node(), " counts as filled, and nobody has said that it is");
    }
  }
  holders = std::move(now);
}

}  // namespace covey::sim
