// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/truth/loop_views.h"

#include <algorithm>

namespace covey::sim {

void LoopViews::OnReceive(absl::Time now, const Message& message) {
  // A server's control loop hands each view on to its data loops.
  if (message.envelope.has_watch_view_reply() && message.to().loop > 0) NoteView(now, message);
  if (message.envelope.has_push_request() || message.envelope.has_pull_request()) {
    arrived_.try_emplace(
        {message.to(), {message.from().node.value(), message.envelope.header().request_id()}}, now);
  }
}

void LoopViews::NoteView(absl::Time now, const Message& message) {
  const proto::ClusterView& view = message.envelope.watch_view_reply().view();
  std::vector<View>& all = views_[message.to()];
  View known{.epoch = Epoch(view.epoch())};
  if (!all.empty()) {
    all.back().until = now;
    known.contracts = all.back().contracts;
  }
  for (const proto::Group& group : view.groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    known.live.push_back(
        {.id = GroupId(group.id()), .first_step = Step(std::max<uint64_t>(1, group.first_step()))});
  }
  for (const proto::Table& table : view.tables()) {
    const absl::StatusOr<Contract> contract = ContractInForce(table);
    if (contract.ok()) known.contracts[TableId(table.id())] = *contract;
  }
  all.push_back(std::move(known));
}

std::vector<const LoopViews::View*> LoopViews::Since(const Message& reply) const {
  std::vector<const View*> since;
  const auto views = views_.find(reply.from());
  const auto arrived = arrived_.find(
      {reply.from(), {reply.to().node.value(), reply.envelope.header().request_id()}});
  if (views == views_.end() || arrived == arrived_.end()) return since;
  for (auto view = views->second.rbegin(); view != views->second.rend(); ++view) {
    if (view->until < arrived->second) break;
    since.push_back(&*view);
  }
  return since;
}

}  // namespace covey::sim
