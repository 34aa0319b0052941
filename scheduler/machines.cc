// SPDX-License-Identifier: Apache-2.0
#include "scheduler/machines.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/control_methods.h"

namespace covey::scheduler {
namespace {

PlanMeasurements::Options PlanOptions(const Config& config) {
  return {.shifts_samples = config.stragglers.highest >= StragglerRung::kShift};
}

}  // namespace

Machines::Machines(const Config& config, ClusterState& cluster)
    : state(cluster),
      topology(state),
      away(state),
      groups(config.groups_options(), state, away, &topology),
      adjustments(state, groups),
      membership(config.membership_options(), state, groups),
      stragglers(config.stragglers, state, away, adjustments),
      plan_measurements(PlanOptions(config), state),
      replans(state, plan_measurements, away, groups.roster()),
      tables(state, [this](NodeId server) { return membership.LoadOf(server); }),
      chains(config.chains_options(), state),
      initializations(state, chains),
      scaling(config.snapshots_options().has_store, state, groups),
      quarantines(state),
      contract_fallback({.enabled = config.contract_fallback}, state, tables),
      barriers(state),
      dispatcher(state),
      snapshots(config.snapshots_options(), state, dispatcher),
      restores(config.snapshots_options().has_store, state, tables,
               [this](const std::string& folder) { return snapshots.IsGoing(folder); }) {}

void Machines::SetOptions(const Config& config) {
  groups.SetOptions(config.groups_options());
  stragglers.SetOptions(config.stragglers);
  plan_measurements.SetOptions(PlanOptions(config));
  chains.SetOptions(config.chains_options());
  contract_fallback.SetOptions({.enabled = config.contract_fallback});
  snapshots.SetSchedule(config.snapshots_options());
}

void Machines::Start(absl::Time now) {
  const absl::Time heard_by = membership.Start(now);
  plan_measurements.Start(now);
  quarantines.Start();
  dispatcher.Start(now, heard_by);
  snapshots.Start(now);
  restores.Start(now);
  // The log does not contain the leases of servers.
  for (const proto::Node& node : state.view().nodes()) {
    if (node.role() == proto::SERVER && node.state() == proto::Node::DEAD) {
      chains.Fence(NodeId(node.id()), membership.LeaseEnd(now));
    }
  }
}

void Machines::Tick(absl::Time now, Answer answer) {
  for (const Membership::Death& death : membership.DeclareDead(now)) {
    OnDeath(now, death, answer);
  }
  if (topology.Tick(now) && topology.measured_links() > 0) {
    plan_measurements.SetCosts(topology.Costs(), absl::StrCat("links: ", topology.measured_links(),
                                                              " measured between workers"));
  }
  groups.Tick(now);
  // A newcomer gets no group before it is known where it is.
  if (topology.settled(now)) replans.Tick(now);
  stragglers.Tick(now);
  std::vector<Barriers::Answer> withdrawn;
  barriers.Expire(now, withdrawn);
  AnswerAll(withdrawn, answer);
  std::vector<DataDispatcher::Answer> reported;
  dispatcher.Tick(now, reported);
  AnswerAll(reported, answer);
  PlaceRestoredTables();
  scaling.Tick();
  quarantines.Tick();
  snapshots.Tick(now);
  restores.Tick(now);
}

void Machines::OnStoreReply(absl::Time now, const Message& reply) {
  if (!restores.OnStoreReply(now, reply)) snapshots.OnStoreReply(now, reply);
}

std::vector<Message> Machines::TakeStoreRequests() {
  std::vector<Message> requests = snapshots.TakeRequests();
  for (Message& request : restores.TakeRequests()) requests.push_back(std::move(request));
  return requests;
}

void Machines::PlaceRestoredTables() {
  if (state.record().has_restore() && membership.CheckServers().ok()) tables.PlaceRestored();
}

absl::Time Machines::NextTick() const {
  return std::min({membership.NextDeath(), barriers.NextDeadline(), dispatcher.NextTick(),
                   snapshots.NextTick(), restores.NextTick()});
}

void Machines::OnDeath(absl::Time now, const Membership::Death& death, Answer answer) {
  chains.Fence(death.node, death.lease_end);
  OnDeparture(now, death.node, answer);
}

void Machines::OnDeparture(absl::Time now, NodeId node, Answer answer) {
  topology.OnDeparture(node);
  away.OnDeparture(node);
  stragglers.OnDeparture(node);
  plan_measurements.OnDeparture(node);
  contract_fallback.OnDeparture(node);
  snapshots.OnDeparture(node);
  std::vector<Barriers::Answer> withdrawn;
  barriers.OnDeparture(node, withdrawn);
  AnswerAll(withdrawn, answer);
  std::vector<DataDispatcher::Answer> lost;
  dispatcher.OnDeparture(now, node, lost);
  AnswerAll(lost, answer);
}

void AnswerAll(const std::vector<Barriers::Answer>& answers, Machines::Answer answer) {
  for (const Barriers::Answer& due : answers) {
    Message reply = MakeControlReply(due.request);
    SetStatus(due.status, reply);
    answer(std::move(reply));
  }
}

void AnswerAll(const std::vector<DataDispatcher::Answer>& answers, Machines::Answer answer) {
  for (const DataDispatcher::Answer& due : answers) {
    Message reply = MakeControlReply(due.request);
    *reply.envelope.mutable_work_reply() = due.reply;
    SetStatus(due.status, reply);
    answer(std::move(reply));
  }
}

}  // namespace covey::scheduler
