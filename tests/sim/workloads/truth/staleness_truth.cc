// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/truth/staleness_truth.h"

#include <algorithm>
#include <cmath>

#include "tests/sim/checkers/published_view.h"

namespace covey::sim {
namespace {

constexpr absl::string_view kName = "staleness";

std::string Where(const ShardReply& reply) {
  return absl::StrCat("shard ", reply.history.shard.index.value(), " generation ",
                      reply.history.generation, " version ", reply.state->version());
}

}  // namespace

void StalenessTruth::OnSend(absl::Time, const Message& message) {
  if (const proto::ClusterView* view = PublishedView(message)) return NoteView(*view);
  if (message.envelope.has_push_request() || message.envelope.has_pull_request()) {
    return NoteRead(message);
  }
  const auto reply = ReadShardReply(message);
  if (!reply) return;
  if (reply->push != nullptr) {
    const proto::PushId& id = reply->push->id();
    acknowledged_[{reply->history.shard,
                   {GroupId(static_cast<uint32_t>(id.producer())), Step(id.sequence())}}]
        .insert(reply->history.generation);
    const std::pair<ShardId, std::pair<GroupId, Step>> push{
        reply->history.shard, {GroupId(static_cast<uint32_t>(id.producer())), Step(id.sequence())}};
    if (reply->push->durable()) {
      undurable_[push] = 0;
    } else {
      undurable_.try_emplace(push, message.to().node.value());
    }
    const std::pair<ShardHistory, GroupId> key = {reply->history,
                                                  GroupId(static_cast<uint32_t>(id.producer()))};
    if (reply->push->discarded()) {
      discarded_[key].insert(Step(id.sequence()));
    } else if (presumed_discarded_[key].count(Step(id.sequence())) > 0) {
      violations_.Add(
          kName, absl::StrCat(Where(*reply), ": step ", id.sequence(), " of group ", id.producer(),
                              " is said to be applied, but readers were "
                              "given values without it"));
    }
    first_generation_.try_emplace(reply->history.shard, reply->history.generation);
  }
  if (reply->values.empty()) return;
  ++reads_;
  CheckElements(*reply);
  CheckClocks(*reply);
  const auto read =
      requests_.find({message.to().node.value(), message.envelope.header().request_id()});
  if (read != requests_.end()) CheckBound(message, *reply, read->second);
}

void StalenessTruth::NoteView(const proto::ClusterView& view) {
  if (view.epoch() <= epoch_) return;
  epoch_ = view.epoch();
  for (const proto::Node& node : view.nodes()) {
    if (node.state() != proto::Node::ALIVE) departed_.insert(node.id());
  }
  groups_.clear();
  for (const proto::Group& group : view.groups()) groups_.push_back(GroupId(group.id()));
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      const auto first = first_generation_.find({TableId(table.id()), ShardIndex(shard.index())});
      history_was_lost_ = history_was_lost_ ||
                          (first != first_generation_.end() && first->second < shard.generation());
    }
  }
}

// A server's control loop hands each view on to its data loops.
void StalenessTruth::NoteLoopView(absl::Time now, const Message& message) {
  if (!message.envelope.has_watch_view_reply() || message.to().loop == 0) return;
  const proto::ClusterView& view = message.envelope.watch_view_reply().view();
  std::vector<LoopView>& all = loop_views_[message.to()];
  LoopView known;
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

void StalenessTruth::NoteRead(const Message& message) {
  const proto::ReadBound& bound = message.envelope.has_push_request()
                                      ? message.envelope.push_request().read()
                                      : message.envelope.pull_request().read();
  // A query after an unanswered push.
  if (message.envelope.has_push_request() && !bound.wanted()) return;
  Read& read = requests_[{message.from().node.value(), message.envelope.header().request_id()}];
  read.group = GroupId(bound.group());
  read.step = Step(bound.step());
  if (bound.has_max_staleness()) read.max_staleness = bound.max_staleness();
}

uint64_t StalenessTruth::PositionOf(GroupId group) const {
  return static_cast<uint64_t>(std::find(groups_.begin(), groups_.end(), group) - groups_.begin());
}

bool StalenessTruth::Includes(const ShardReply& reply, GroupId group, uint64_t step) const {
  const uint64_t element = PositionOf(group) * steps_ + step - 1;
  return element < reply.values.size() && reply.values[element] != 0;
}

bool StalenessTruth::IsOwed(const ShardHistory& history, GroupId group, Step step) const {
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

bool StalenessTruth::MayBeDiscarded(const ShardHistory& history, GroupId group, Step step,
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

void StalenessTruth::CheckBound(const Message& message, const ShardReply& reply, const Read& read) {
  const auto views = loop_views_.find(message.from());
  if (views == loop_views_.end()) return;
  const auto arrived = arrived_.find(
      {message.from(), {message.to().node.value(), message.envelope.header().request_id()}});
  std::string missing;
  std::optional<Presumed> likely;
  for (auto view = views->second.rbegin(); view != views->second.rend(); ++view) {
    if (arrived == arrived_.end() || view->until < arrived->second) break;
    Presumed presumed;
    const std::string here = Missing(reply, read, *view, presumed);
    if (here.empty() && presumed.empty()) return;
    if (here.empty() && !likely) likely = std::move(presumed);
    if (missing.empty()) missing = here;
  }
  if (likely) {
    for (const auto& [group, step] : *likely) {
      presumed_discarded_[{reply.history, group}].insert(step);
    }
    return;
  }
  if (!missing.empty()) violations_.Add(kName, missing);
}

std::string StalenessTruth::Missing(const ShardReply& reply, const Read& read, const LoopView& view,
                                    Presumed& presumed) {
  const auto known = view.contracts.find(reply.history.shard.table);
  if (known == view.contracts.end()) return "";
  const Contract& contract = known->second;
  std::string missing;
  if (contract.kind == Contract::Kind::kLocal && !read.max_staleness && !view.live.empty()) {
    missing = MissingRound(reply, read);
  }
  return missing.empty() ? MissingStep(reply, read, contract, view, presumed) : missing;
}

std::string StalenessTruth::MissingRound(const ShardReply& reply, const Read& read) {
  if (read.step == Step() || !IsOwed(reply.history, read.group, read.step)) return "";
  for (GroupId group : groups_) {
    for (uint64_t round = read.step.value(); round <= steps_; ++round) {
      if (Includes(reply, group, round)) return "";
    }
  }
  return absl::StrCat(Where(reply), ": group ", read.group.value(), " finished round ",
                      read.step.value(), " and was given values without step of that round");
}

std::string StalenessTruth::MissingStep(const ShardReply& reply, const Read& read,
                                        const Contract& contract, const LoopView& view,
                                        Presumed& presumed) {
  std::optional<Step> required = contract.RequiredStep(read.step);
  if (read.max_staleness) {
    required = Step(read.step.value() - std::min(read.step.value(), *read.max_staleness));
  }
  const bool own = contract.kind == Contract::Kind::kSsp ||
                   (contract.kind == Contract::Kind::kBsp && !read.max_staleness);
  for (const LiveGroup& group : view.live) {
    uint64_t bound = required ? required->value() : 0;
    if (own && group.id == read.group) bound = read.step.value();
    for (uint64_t step = group.first_step.value(); step <= bound; ++step) {
      if (Includes(reply, group.id, step) || !IsOwed(reply.history, group.id, Step(step)) ||
          MayBeDiscarded(reply.history, group.id, Step(step), presumed)) {
        continue;
      }
      return absl::StrCat(Where(reply), ": group ", read.group.value(), " finished step ",
                          read.step.value(), " and was given values without step ", step,
                          " of group ", group.id.value());
    }
  }
  return "";
}

bool StalenessTruth::IsOnce(float value, const GivenGradients::Place& place) const {
  const float slack = options_.rounded ? 1e-4f : 0;
  if (std::fabs(value - 1) <= slack) return true;
  if (options_.given != nullptr) {
    // Once in its own step, plus a share of an update for each gradient that counts in another one.
    const uint64_t elsewhere = options_.given->OnlyElsewhere(place);
    if (elsewhere > 0) return value > 0 && value <= 1 + static_cast<float>(elsewhere) + 1e-4f;
    if (options_.given->MayBeShared(place)) return value > 0 && value <= 1 + slack;
  }
  if (!options_.averages || value <= 0 || value > 1 + slack) return false;
  // An update of n equal pushes leaves 1/n of each behind.
  const float pushes = 1 / value;
  return options_.uneven || std::fabs(pushes - std::round(pushes)) < 1e-4f;
}

void StalenessTruth::CheckElements(const ShardReply& reply) {
  for (uint64_t element = 0; element < reply.values.size(); ++element) {
    const float value = reply.values[element];
    if (value == 0) continue;
    const bool known = element < groups_.size() * steps_;
    if (known && IsOnce(value, {groups_[element / steps_], Step(element % steps_ + 1),
                                reply.history.shard.table})) {
      continue;
    }
    violations_.Add(kName, absl::StrCat(Where(reply), " holds ", value, " in the element of step ",
                                        element % steps_ + 1, " of the group at position ",
                                        element / steps_, ": not applied exactly once"));
    return;
  }
}

void StalenessTruth::CheckClocks(const ShardReply& reply) {
  std::map<GroupId, uint64_t> claimed;
  for (const proto::GroupClock& clock : reply.state->clocks()) {
    claimed[GroupId(clock.group())] = clock.step();
  }
  const TableId table = reply.history.shard.table;
  for (GroupId group : groups_) {
    uint64_t highest = 0;
    for (uint64_t step = 1; step <= steps_; ++step) {
      const bool elsewhere = step > claimed[group] && options_.given != nullptr &&
                             options_.given->MayBeElsewhere({group, Step(step), table});
      if (Includes(reply, group, step) && !elsewhere) highest = step;
    }
    Presumed presumed;
    if (claimed[group] > highest &&
        MayBeDiscarded(reply.history, group, Step(claimed[group]), presumed)) {
      for (const auto& [who, step] : presumed) {
        presumed_discarded_[{reply.history, who}].insert(step);
      }
      continue;
    }
    if (claimed[group] == highest) continue;
    if (claimed[group] > highest && !HasGradient(table, group, Step(claimed[group]))) continue;
    violations_.Add(kName, absl::StrCat(Where(reply), ": the clock of group ", group.value(),
                                        " says ", claimed[group], ", the values ", highest));
    return;
  }
}

void StalenessTruth::OnReceive(absl::Time now, absl::string_view receiver, const Message& message) {
  NoteLoopView(now, message);
  if (message.envelope.has_push_request() || message.envelope.has_pull_request()) {
    arrived_.try_emplace(
        {message.to(), {message.from().node.value(), message.envelope.header().request_id()}}, now);
  }
  const auto reply = ReadShardReply(message);
  if (!reply || reply->values.empty()) return;
  // A later request's reply supersedes: the client ignores replies in flight to an earlier one.
  LastRead& last = last_read_[{message.to().node.value(), reply->history.shard}];
  const uint64_t request = message.envelope.header().request_id();
  if (request <= last.request) return;
  last.request = request;
  if (last.generation == reply->history.generation) {
    bool back = reply->state->version() < last.version;
    for (size_t i = 0; i < last.values.size(); ++i) {
      back = back || (last.values[i] != 0 && reply->values[i] == 0);
    }
    if (back) {
      violations_.Add(kName, absl::StrCat(Where(*reply), ": what ", receiver,
                                          " reads went back from version ", last.version));
    }
  }
  last.generation = reply->history.generation;
  last.version = reply->state->version();
  last.values.assign(reply->values.begin(), reply->values.end());
}

}  // namespace covey::sim
