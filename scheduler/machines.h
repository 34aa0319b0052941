// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "scheduler/barrier.h"
#include "scheduler/config.h"
#include "scheduler/groups/away_workers.h"
#include "scheduler/groups/group_adjustments.h"
#include "scheduler/groups/group_replans.h"
#include "scheduler/groups/groups.h"
#include "scheduler/groups/plan_measurements.h"
#include "scheduler/groups/straggler_controller.h"
#include "scheduler/nodes/membership.h"
#include "scheduler/nodes/quarantines.h"
#include "scheduler/nodes/scaling.h"
#include "scheduler/placement/chains.h"
#include "scheduler/snapshots/snapshots.h"
#include "scheduler/snapshots/table_restores.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/tables/contract_fallback.h"
#include "scheduler/tables/initializations.h"
#include "scheduler/tables/tables.h"
#include "scheduler/topology/topology_survey.h"
#include "scheduler/work/data_dispatcher.h"

namespace covey::scheduler {

// The state machines of the scheduler, which read and edit one state, and the events that concern
// all of them: the start, the passing of time, and the departure of a node. Other requests concern
// one machine each and are in RequestHandlers.
//
// Replies that become due go to `answer`, which sends them when everything that is committed so far
// is durable. Actor-confined, deterministic. `state` outlives it.
struct Machines {
  using Answer = absl::FunctionRef<void(Message)>;

  Machines(const Config& config, ClusterState& state);

  // The options of all machines that may change while the scheduler runs, from now on.
  void SetOptions(const Config& config);

  // To be called once, before anything else.
  void Start(absl::Time now);
  // Timers of all machines except Chains.
  void Tick(absl::Time now, Answer answer);
  // When Tick has to be called at the latest.
  absl::Time NextTick() const;
  // Places the tables of the snapshot that this job continues, once all expected servers are there.
  void PlaceRestoredTables();
  // The store has answered; and what is asked of it since the last call.
  void OnStoreReply(absl::Time now, const Message& reply);
  std::vector<Message> TakeStoreRequests();
  // Membership has found that a node is no longer ALIVE, or even DEAD: notifies the other machines.
  void OnDeparture(absl::Time now, NodeId node, Answer answer);
  void OnDeath(absl::Time now, const Membership::Death& death, Answer answer);

  ClusterState& state;
  TopologySurvey topology;
  AwayWorkers away;
  Groups groups;
  GroupAdjustments adjustments;
  Membership membership;
  StragglerController stragglers;
  PlanMeasurements plan_measurements;
  GroupReplans replans;
  Tables tables;
  Chains chains;
  Initializations initializations;
  Scaling scaling;
  Quarantines quarantines;
  ContractFallback contract_fallback;
  Barriers barriers;
  DataDispatcher dispatcher;
  Snapshots snapshots;
  TableRestores restores;
};

// For machines that reply to several requests at a time.
void AnswerAll(const std::vector<Barriers::Answer>& answers, Machines::Answer answer);
void AnswerAll(const std::vector<DataDispatcher::Answer>& answers, Machines::Answer answer);

}  // namespace covey::scheduler
