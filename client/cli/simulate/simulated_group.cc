// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/simulated_group.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/base/check.h"

namespace covey::cli {
namespace {

// The fraction of a step's computation before the gradients.
constexpr double kForwardShare = 1.0 / 3;

// The part of a step that concerns the servers.
struct ServerPart {
  // The step, or the round, that is pushed or waited for; 0 = none.
  Step pushed;
  Step awaited;
};

ServerPart ServerPartOf(const ClusterOptions& options, Step step) {
  if (options.servers == 0) return {};
  const Contract& contract = options.contract;
  if (contract.kind != Contract::Kind::kLocal) return {.pushed = step, .awaited = step};
  ServerPart part;
  const uint64_t number = step.value();
  if (number % contract.local_steps == 0) part.pushed = Step(number / contract.local_steps);
  if (number > contract.overlap_steps) {
    const uint64_t due = number - contract.overlap_steps;
    if (due % contract.local_steps == 0) part.awaited = Step(due / contract.local_steps);
  }
  return part;
}

}  // namespace

SimulatedGroup::SimulatedGroup(const World& world, GroupId id,
                               std::shared_ptr<const Membership> membership)
    : world_(world), id_(id), membership_(std::move(membership)), tracks_(world.options.tensors) {}

void SimulatedGroup::Start() {
  for (uint32_t rank = 0; rank < membership_->size(); ++rank) {
    NodeState& state = world_.nodes[membership_->nodes[rank]];
    state.group = id_;
    state.values.assign(tensors(), Step());
    Begin(Step(1), membership_->nodes[rank], rank);
  }
}

void SimulatedGroup::Join(uint32_t node) {
  NodeState& state = world_.nodes[node];
  state.group = id_;
  state.values.clear();
  for (const Track& track : tracks_) state.values.push_back(track.gathered);
  Begin(begun_.Next(), node, membership_->size());
}

void SimulatedGroup::SetMembership(std::shared_ptr<const Membership> membership) {
  membership_ = std::move(membership);
  shares_.clear();
  minimum_members_ = 0;
}

void SimulatedGroup::SetShares(const std::vector<uint32_t>& shares) {
  COVEY_CHECK(shares.empty() || shares.size() == membership_->size());
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  shares_.clear();
  for (const uint32_t share : shares) {
    shares_.push_back(share / sum * static_cast<double>(shares.size()));
  }
}

void SimulatedGroup::SetPartial(uint32_t minimum_members, absl::Duration grace) {
  minimum_members_ = minimum_members;
  grace_ = grace;
}

SimulatedGroup::Running& SimulatedGroup::RunningOf(Step step) {
  const auto [found, is_new] = running_.try_emplace(step);
  Running& running = found->second;
  if (!is_new) return running;
  begun_ = std::max(begun_, step);
  running.membership = membership_;
  for (uint32_t tensor = 0; tensor < tensors(); ++tensor) {
    running.lanes.push_back(MakeLane(step, tensor));
  }
  return running;
}

SimulatedGroup::Lane SimulatedGroup::MakeLane(Step step, uint32_t tensor) {
  const ServerPart servers = ServerPartOf(world_.options, step);
  const Exchange::Options options = {
      .bytes = static_cast<double>(world_.options.gradient_bytes) / tensors(),
      .push = servers.pushed != Step(),
      .await = servers.awaited != Step()};
  Exchange::Listener listener = {
      .arrived =
          [this, tensor, pushed = servers.pushed] {
            Track& track = tracks_[tensor];
            const auto samples = std::llround(std::exchange(track.round_samples, 0));
            world_.shards[tensor]->Push(
                {.group = id_, .step = pushed, .samples = static_cast<uint64_t>(samples)},
                track.version);
          },
      .reduced = [this, step, tensor] { OnReduced(step, tensor); },
      .returned = [this, step, tensor] { running_.at(step).lanes[tensor].returned = Now(); },
      .gathered = [this, step, tensor](uint32_t rank) { OnGathered(step, tensor, rank); }};
  const auto make = membership_->trees != nullptr ? MakeMessageExchange : MakeModelExchange;
  Lane lane = {.exchange = make({world_.simulator, world_.fabric, links_free_}, membership_,
                                options, std::move(listener)),
               .awaited = servers.awaited,
               .submitted = std::vector<bool>(membership_->size(), false)};
  if (options.await && tracks_[tensor].answered >= lane.awaited) lane.exchange->Answer();
  return lane;
}

void SimulatedGroup::Begin(Step step, uint32_t node, uint32_t rank) {
  NodeState& state = world_.nodes[node];
  state.waiting = false;
  // The step may have ended without this node.
  if (step <= finished_) return world_.left(node);
  const std::vector<uint32_t>& nodes = RunningOf(step).membership->nodes;
  if (rank >= nodes.size() || nodes[rank] != node) {
    const auto place = std::find(nodes.begin(), nodes.end(), node);
    if (place == nodes.end()) return world_.left(node);
    rank = static_cast<uint32_t>(place - nodes.begin());
  }
  state.step = step;
  state.rank = rank;
  state.tensor = 0;
  Forward(node);
}

// Continues the forward pass as far as values have arrived.
void SimulatedGroup::Forward(uint32_t node) {
  NodeState& state = world_.nodes[node];
  state.waiting = state.values[state.tensor].Next() < state.step;
  if (state.waiting) return;
  if (state.tensor == 0) {
    const bool present = running_.at(state.step).membership == membership_;
    const double share = shares_.empty() || !present ? 1 : shares_[state.rank];
    state.begun = Now();
    state.compute = world_.step_times.Next(node, id_.value(), state.step.value()) * share;
    state.samples = static_cast<double>(world_.options.samples) * share;
  }
  const uint32_t last = tensors() - 1;
  if (last == 0) {
    world_.simulator.After(state.compute, [this, node] { Backward(node, 0); });
  } else if (state.tensor < last) {
    world_.simulator.After(state.compute * (kForwardShare / tensors()), [this, node] {
      ++world_.nodes[node].tensor;
      Forward(node);
    });
  } else {
    world_.simulator.After(state.compute * (1.0 / tensors()),
                           [this, node, last] { Backward(node, last); });
  }
}

// The gradient of a tensor is computed.
void SimulatedGroup::Backward(uint32_t node, uint32_t tensor) {
  const NodeState& state = world_.nodes[node];
  if (state.aside < state.step) Submit(state.step, tensor, state.rank);
  if (tensor == 0) return EndStep(node);
  world_.simulator.After(state.compute * ((1 - kForwardShare) / tensors()),
                         [this, node, tensor] { Backward(node, tensor - 1); });
}

void SimulatedGroup::EndStep(uint32_t node) {
  const NodeState& state = world_.nodes[node];
  const Step step = state.step;
  if (state.aside < step) {
    // The last one may have ended the step.
    if (const auto found = running_.find(step); found != running_.end()) {
      Running& running = found->second;
      if (minimum_members_ > 0 && running.contributors == minimum_members_) {
        world_.simulator.After(grace_, [this, step] { LeaveLateAside(step); });
      }
    }
  }
  world_.computed(node, state.compute, state.samples);
  Begin(std::max(step, state.aside).Next(), node, state.rank);
}

void SimulatedGroup::Submit(Step step, uint32_t tensor, uint32_t rank) {
  Running& running = running_.at(step);
  Lane& lane = running.lanes[tensor];
  lane.submitted[rank] = true;
  lane.submitted_last = Now();
  lane.submitted_sum += Now();
  const NodeState& state = world_.nodes[running.membership->nodes[rank]];
  if (tensor == 0 && state.aside < step) {
    ++running.contributors;
    running.samples += state.samples;
    running.begun_sum += state.begun;
    running.compute_sum += absl::ToDoubleSeconds(state.compute);
  }
  // The last one may end the step.
  const std::shared_ptr<Exchange> exchange = lane.exchange;
  exchange->Submit(rank);
}

void SimulatedGroup::LeaveLateAside(Step step) {
  const auto running = running_.find(step);
  if (running == running_.end()) return;
  std::vector<std::pair<uint32_t, uint32_t>> missing;  // rank, tensor
  for (uint32_t rank = 0; rank < running->second.membership->size(); ++rank) {
    if (running->second.lanes[0].submitted[rank]) continue;
    NodeState& state = world_.nodes[running->second.membership->nodes[rank]];
    state.aside = step;
    ++state.steps_aside;
    for (uint32_t tensor = 0; tensor < tensors(); ++tensor) {
      if (!running->second.lanes[tensor].submitted[rank]) missing.emplace_back(rank, tensor);
    }
  }
  for (const auto& [rank, tensor] : missing) Submit(step, tensor, rank);
}

void SimulatedGroup::OnReduced(Step step, uint32_t tensor) {
  Running& running = running_.at(step);
  running.lanes[tensor].reduced = Now();
  tracks_[tensor].round_samples += running.samples;
}

void SimulatedGroup::OnGathered(Step step, uint32_t tensor, uint32_t rank) {
  Running& running = running_.at(step);
  Lane& lane = running.lanes[tensor];
  lane.gathered_sum += Now();
  const bool last = ++lane.gathered == running.membership->size();
  if (last) {
    tracks_[tensor].gathered = std::max(tracks_[tensor].gathered, step);
    // A member that has just joined was not part of this step.
    const auto next = running_.find(step.Next());
    if (next != running_.end() && next->second.membership != running.membership) {
      for (const uint32_t node : next->second.membership->nodes) TakeValues(node, tensor, step);
    }
  }
  TakeValues(running.membership->nodes[rank], tensor, step);
  if (!last || ++running.lanes_gathered < tensors()) return;
  const StepRecord record = RecordOf(running);
  running_.erase(step);
  finished_ = std::max(finished_, step);
  world_.finished(record);
}

void SimulatedGroup::TakeValues(uint32_t node, uint32_t tensor, Step step) {
  NodeState& state = world_.nodes[node];
  if (state.group != id_ || state.values[tensor] >= step) return;
  state.values[tensor] = step;
  if (state.waiting && state.tensor == tensor) Forward(node);
}

// The waiting times are measured on the first tensor, which is submitted last and needed first.
StepRecord SimulatedGroup::RecordOf(const Running& running) const {
  const Lane& lane = running.lanes[0];
  const double size = running.membership->size();
  const double contributors = std::max(1u, running.contributors);
  StepRecord record = {.group = id_,
                       .samples = running.samples,
                       .members = running.membership->size(),
                       .compute = running.compute_sum / contributors,
                       .waiting_for_members = lane.submitted_last - lane.submitted_sum / size,
                       .collectives = lane.reduced - lane.submitted_last +
                                      std::max(0.0, lane.gathered_sum / size - lane.returned),
                       .servers = lane.returned - lane.reduced};
  const double waiting =
      std::max(0.0, (lane.gathered_sum / size - running.begun_sum / contributors) - record.compute);
  const double told = record.waiting_for_members + record.collectives + record.servers;
  const double scale = told > 0 ? waiting / told : 0;
  record.waiting_for_members *= scale;
  record.collectives *= scale;
  record.servers *= scale;
  return record;
}

void SimulatedGroup::Answer(uint32_t tensor, Step step, Version version) {
  Track& track = tracks_[tensor];
  track.answered = std::max(track.answered, step);
  track.version = std::max(track.version, version);
  for (auto& [number, running] : running_) {
    Lane& lane = running.lanes[tensor];
    if (lane.awaited == step) lane.exchange->Answer();
  }
}

}  // namespace covey::cli
