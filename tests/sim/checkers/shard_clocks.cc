// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/shard_clocks.h"

#include <algorithm>
#include <iterator>

namespace covey::sim {

bool ShardClocks::State::GoesBackTo(const State& other) const {
  if (other.version < version || other.samples < samples) return true;
  return std::any_of(clocks.begin(), clocks.end(), [&other](const auto& clock) {
    const auto found = other.clocks.find(clock.first);
    return found == other.clocks.end() || found->second < clock.second;
  });
}

ShardClocks::State ShardClocks::StateOf(const ShardReply& reply) {
  State state{.version = reply.state->version(), .samples = reply.state->samples()};
  for (const proto::GroupClock& clock : reply.state->clocks()) {
    state.clocks[clock.group()] = clock.step();
  }
  return state;
}

void ShardClocks::NoteRequest(const Message& message) {
  const proto::Envelope& envelope = message.envelope;
  ShardHistory history;
  if (envelope.has_push_request()) {
    const proto::PushRequest& push = envelope.push_request();
    history = {{TableId(push.id().table()), ShardIndex(push.id().shard())},
               push.shard_generation()};
  } else {
    const proto::PullRequest& pull = envelope.pull_request();
    history = {{TableId(pull.table()), ShardIndex(pull.shard())}, pull.shard_generation()};
  }
  const uint64_t node = message.from().node.value();
  const auto told = told_.find({history, node});
  known_.try_emplace({history, node, envelope.header().request_id()},
                     told == told_.end() ? State() : told->second);
}

void ShardClocks::OnSend(absl::Time, const Message& message) {
  if (message.envelope.has_push_request() || message.envelope.has_pull_request()) {
    return NoteRequest(message);
  }
  const auto reply = ReadShardReply(message);
  if (!reply) return;
  const State state = StateOf(*reply);
  auto& said = said_[reply->history];
  const auto [known, is_new] = said.try_emplace(state.version, state);
  if (known->second.samples != state.samples) {
    Complain("two servers say different things", reply->history, known->second, state);
  }
  // Pushes that are received and not applied advance clocks without a version.
  if (!known->second.GoesBackTo(state)) known->second = state;
  if (known != said.begin() && std::prev(known)->second.GoesBackTo(state)) {
    Complain("somebody says", reply->history, std::prev(known)->second, state);
  }
  const auto next = std::next(known);
  if (next != said.end() && state.GoesBackTo(next->second)) {
    Complain("somebody says", reply->history, state, next->second);
  }
}

void ShardClocks::OnReceive(absl::Time, absl::string_view receiver, const Message& message) {
  const auto reply = ReadShardReply(message);
  if (!reply) return;
  const State state = StateOf(*reply);
  const uint64_t node = message.to().node.value();
  const auto known = known_.find({reply->history, node, message.envelope.header().request_id()});
  if (known != known_.end() && known->second.GoesBackTo(state)) {
    Complain(absl::StrCat(receiver, " is told"), reply->history, known->second, state);
  }
  State& told = told_[{reply->history, node}];
  if (!told.GoesBackTo(state)) told = state;
}

void ShardClocks::Complain(absl::string_view who, const ShardHistory& history, const State& before,
                           const State& after) {
  violations_.Add(
      "shard_clocks",
      absl::StrCat("shard ", history.shard.index.value(), " generation ", history.generation,
                   " went back: ", who, " version ", before.version, " to ", after.version,
                   ", samples ", before.samples, " to ", after.samples));
}

}  // namespace covey::sim
