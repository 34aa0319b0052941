// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/truth/staleness_truth.h"

#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/published_view.h"
#include "tests/sim/workloads/truth/reply_description.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {

StalenessTruth::StalenessTruth(Violations& violations, const Options& options)
    : violations_(violations),
      options_(options),
      elements_(options.steps),
      fates_({.discards = options.discards, .given = options.given}, violations),
      bounds_(elements_, fates_, violations),
      samples_(elements_, options.given, violations),
      monotonic_(violations) {}

void StalenessTruth::OnSend(absl::Time, const Message& message) {
  if (const proto::ClusterView* view = PublishedView(message)) return NoteView(*view);
  if (message.envelope.has_push_request()) samples_.NotePush(message.envelope.push_request());
  if (message.envelope.has_push_request() || message.envelope.has_pull_request()) {
    return bounds_.NoteRequest(message);
  }
  const auto reply = ReadShardReply(message);
  if (!reply) return;
  if (reply->push != nullptr) fates_.NotePushReply(message, *reply);
  if (reply->values.empty()) return;
  ++reads_;
  if (!CheckElements(*reply)) return;
  samples_.Check(*reply);
  CheckClocks(*reply);
  bounds_.Check(message, *reply);
}

void StalenessTruth::OnReceive(absl::Time now, absl::string_view receiver, const Message& message) {
  bounds_.OnReceive(now, message);
  const auto reply = ReadShardReply(message);
  if (reply && !reply->values.empty()) monotonic_.OnReceive(receiver, message, *reply);
}

void StalenessTruth::NoteView(const proto::ClusterView& view) {
  if (view.epoch() <= epoch_) return;
  epoch_ = view.epoch();
  elements_.NoteView(view);
  fates_.NoteView(view);
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

bool StalenessTruth::CheckElements(const ShardReply& reply) {
  const uint64_t steps = elements_.steps();
  for (uint64_t element = 0; element < reply.values.size(); ++element) {
    const float value = reply.values[element];
    if (value == 0) continue;
    const bool known = element < elements_.groups().size() * steps;
    if (known && IsOnce(value, {elements_.groups()[element / steps], Step(element % steps + 1),
                                reply.history.shard.table})) {
      continue;
    }
    violations_.Add(kStaleness,
                    absl::StrCat(Describe(reply), " holds ", value, " in the element of step ",
                                 element % steps + 1, " of the group at position ", element / steps,
                                 ": not applied exactly once"));
    return false;
  }
  return true;
}

void StalenessTruth::CheckClocks(const ShardReply& reply) {
  std::map<GroupId, uint64_t> claimed;
  for (const proto::GroupClock& clock : reply.state->clocks()) {
    claimed[GroupId(clock.group())] = clock.step();
  }
  const TableId table = reply.history.shard.table;
  for (GroupId group : elements_.groups()) {
    uint64_t highest = 0;
    for (uint64_t step = 1; step <= elements_.steps(); ++step) {
      const bool elsewhere = step > claimed[group] && options_.given != nullptr &&
                             options_.given->MayBeElsewhere({group, Step(step), table});
      if (elements_.Includes(reply.values, group, step) && !elsewhere) highest = step;
    }
    StepFates::Presumed presumed;
    if (claimed[group] > highest &&
        fates_.MayBeDiscarded(reply.history, group, Step(claimed[group]), presumed)) {
      fates_.Presume(reply.history, presumed);
      continue;
    }
    if (claimed[group] == highest) continue;
    if (claimed[group] > highest && !fates_.HasGradient(table, group, Step(claimed[group]))) {
      continue;
    }
    violations_.Add(kStaleness,
                    absl::StrCat(Describe(reply), ": the clock of group ", group.value(), " says ",
                                 claimed[group], ", the values ", highest));
    return;
  }
}

}  // namespace covey::sim
