#include "client/cli/simulate/simulated_group.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/base/check.h"

namespace covey::cli {
namespace {

// What a step has to do with the servers.
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
    : world_(world), id_(id), membership_(std::move(membership)) {}

void SimulatedGroup::Start() {
  // A copy: the last member may change what comes next.
  const std::vector<uint32_t> nodes = membership_->nodes;
  for (uint32_t rank = 0; rank < nodes.size(); ++rank) Begin(Step(1), nodes[rank], rank);
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
  const ServerPart servers = ServerPartOf(world_.options, step);
  const Exchange::Options exchange = {.bytes = static_cast<double>(world_.options.gradient_bytes),
                                      .push = servers.pushed != Step(),
                                      .await = servers.awaited != Step()};
  running.membership = membership_;
  running.awaited = servers.awaited;
  running.submitted.assign(membership_->size(), false);
  const auto make = membership_->trees != nullptr ? MakeMessageExchange : MakeModelExchange;
  running.exchange = make({world_.simulator, world_.fabric}, membership_, exchange,
                          ListenerFor(step, exchange.push));
  if (exchange.await && answered_ >= running.awaited) running.exchange->Answer();
  return running;
}

Exchange::Listener SimulatedGroup::ListenerFor(Step step, bool push) {
  const Step pushed = ServerPartOf(world_.options, step).pushed;
  Exchange::Listener listener = {
      .arrived = nullptr,
      .reduced = [this, step] { OnReduced(step); },
      .returned = [this, step] { running_.at(step).returned = Now(); },
      .gathered = [this, step](uint32_t rank) { OnGathered(step, rank); }};
  if (push) {
    listener.arrived = [this, pushed] {
      const double samples = std::exchange(round_samples_, 0);
      world_.shard.Push(
          {.group = id_, .step = pushed, .samples = static_cast<uint64_t>(std::llround(samples))},
          version_);
    };
  }
  return listener;
}

void SimulatedGroup::Begin(Step step, uint32_t node, uint32_t rank) {
  // Without it, a step may be over.
  if (step <= finished_) return world_.left(node);
  const std::shared_ptr<const Membership>& membership = RunningOf(step).membership;
  const std::vector<uint32_t>& nodes = membership->nodes;
  if (rank >= nodes.size() || nodes[rank] != node) {
    const auto place = std::find(nodes.begin(), nodes.end(), node);
    if (place == nodes.end()) return world_.left(node);
    rank = static_cast<uint32_t>(place - nodes.begin());
  }
  world_.nodes[node].computing = step;
  const double share = shares_.empty() || membership != membership_ ? 1 : shares_[rank];
  const absl::Duration compute = world_.step_times.Next(node, id_.value(), step.value()) * share;
  const double samples = static_cast<double>(world_.options.samples) * share;
  world_.simulator.After(compute, [this, step, node, rank, begun = Now(), samples] {
    OnComputed(step, node, rank, begun, samples);
  });
}

void SimulatedGroup::OnComputed(Step step, uint32_t node, uint32_t rank, double begun,
                                double samples) {
  NodeState& state = world_.nodes[node];
  state.computing = Step();
  world_.computed(node, absl::Seconds(Now() - begun), samples);
  if (state.aside >= step) {
    if (state.values >= state.aside) Begin(state.values.Next(), node, rank);
    return;
  }
  Running& running = running_.at(step);
  ++running.contributors;
  running.samples += samples;
  running.begun_sum += begun;
  running.computed_sum += Now();
  if (minimum_members_ > 0 && running.contributors == minimum_members_) {
    world_.simulator.After(grace_, [this, step] { LeaveLateAside(step); });
  }
  Submit(step, rank);
}

void SimulatedGroup::Submit(Step step, uint32_t rank) {
  Running& running = running_.at(step);
  running.submitted[rank] = true;
  running.submitted_last = Now();
  // The last one may end the step.
  const std::shared_ptr<Exchange> exchange = running.exchange;
  exchange->Submit(rank);
}

void SimulatedGroup::LeaveLateAside(Step step) {
  const auto running = running_.find(step);
  if (running == running_.end()) return;
  std::vector<uint32_t> late;
  for (uint32_t rank = 0; rank < running->second.membership->size(); ++rank) {
    if (running->second.submitted[rank]) continue;
    late.push_back(rank);
    NodeState& state = world_.nodes[running->second.membership->nodes[rank]];
    state.aside = step;
    ++state.steps_aside;
  }
  for (const uint32_t rank : late) Submit(step, rank);
}

void SimulatedGroup::OnReduced(Step step) {
  Running& running = running_.at(step);
  running.reduced = Now();
  round_samples_ += running.samples;
}

void SimulatedGroup::OnGathered(Step step, uint32_t rank) {
  Running& running = running_.at(step);
  const uint32_t node = running.membership->nodes[rank];
  NodeState& state = world_.nodes[node];
  state.values = step;
  running.gathered_sum += Now();
  const bool last = ++running.gathered == running.membership->size();
  if (state.computing == Step() && state.aside <= step) Begin(step.Next(), node, rank);
  if (!last) return;
  // What has joined has no step behind it here.
  for (const uint32_t other : RunningOf(step.Next()).membership->nodes) {
    NodeState& joined = world_.nodes[other];
    if (joined.computing != Step() || joined.values >= step || joined.aside > step) continue;
    joined.values = step;
    Begin(step.Next(), other, 0);
  }
  const Running done = std::move(running);
  running_.erase(step);
  Finish(step, done);
}

void SimulatedGroup::Finish(Step step, const Running& running) {
  finished_ = std::max(finished_, step);
  const double size = running.membership->size();
  const double contributors = std::max(1u, running.contributors);
  world_.finished(
      {.samples = running.samples,
       .members = running.membership->size(),
       .compute = (running.computed_sum - running.begun_sum) / contributors,
       .waiting_for_members = running.submitted_last - running.computed_sum / contributors,
       .collectives = running.reduced - running.submitted_last +
                      std::max(0.0, running.gathered_sum / size - running.returned),
       .servers = running.returned - running.reduced});
}

void SimulatedGroup::Answer(Step step, Version version) {
  answered_ = std::max(answered_, step);
  version_ = std::max(version_, version);
  for (auto& [number, running] : running_) {
    if (running.awaited == step && step != Step()) running.exchange->Answer();
  }
}

}  // namespace covey::cli
