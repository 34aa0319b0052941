// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/truth/read_bounds.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/sim/workloads/truth/reply_description.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {

void ReadBounds::NoteRequest(const Message& message) {
  const proto::ReadBound& bound = message.envelope.has_push_request()
                                      ? message.envelope.push_request().read()
                                      : message.envelope.pull_request().read();
  // A query after an unanswered push.
  if (message.envelope.has_push_request() && !bound.wanted()) return;
  const auto [at, is_first] =
      reads_.try_emplace({message.from().node.value(), message.envelope.header().request_id()});
  Read& read = at->second;
  if (is_first) read.view = Epoch(message.envelope.header().epoch());
  read.group = GroupId(bound.group());
  read.step = Step(bound.step());
  if (bound.has_max_staleness()) read.max_staleness = bound.max_staleness();
}

void ReadBounds::Check(const Message& message, const ShardReply& reply) {
  const auto found =
      reads_.find({message.to().node.value(), message.envelope.header().request_id()});
  if (found == reads_.end()) return;
  std::string missing;
  std::optional<StepFates::Presumed> likely;
  for (const LoopViews::View* view : loops_.Since(message)) {
    if (view->epoch < found->second.view && AsksForSteps(reply, found->second, *view)) {
      if (missing.empty()) {
        missing =
            absl::StrCat(Describe(reply), ": judged by the view of epoch ", view->epoch.value(),
                         ", and the reader had that of epoch ", found->second.view.value());
      }
      continue;
    }
    StepFates::Presumed presumed;
    const std::string here = Missing(reply, found->second, *view, presumed);
    if (here.empty() && presumed.empty()) return;
    if (here.empty() && !likely) likely = std::move(presumed);
    if (missing.empty()) missing = here;
  }
  if (likely) {
    fates_.Presume(reply.history, *likely);
  } else if (!missing.empty()) {
    violations_.Add(kStaleness, missing);
  }
}

bool ReadBounds::AsksForSteps(const ShardReply& reply, const Read& read,
                              const LoopViews::View& view) {
  const auto known = view.contracts.find(reply.history.shard.table);
  if (known == view.contracts.end()) return false;
  if (read.max_staleness) return read.step.value() > *read.max_staleness;
  return known->second.RequiredStep(read.step).value_or(Step()) > Step() ||
         known->second.RequiredRound(read.step).value_or(Step()) > Step();
}

std::string ReadBounds::Missing(const ShardReply& reply, const Read& read,
                                const LoopViews::View& view, StepFates::Presumed& presumed) const {
  const auto known = view.contracts.find(reply.history.shard.table);
  if (known == view.contracts.end()) return "";
  const Contract& contract = known->second;
  std::string missing;
  if (contract.kind == Contract::Kind::kLocal && !read.max_staleness && !view.live.empty()) {
    missing = MissingRound(reply, read);
  }
  return missing.empty() ? MissingStep(reply, read, contract, view, presumed) : missing;
}

std::string ReadBounds::MissingRound(const ShardReply& reply, const Read& read) const {
  if (read.step == Step() || !fates_.IsOwed(reply.history, read.group, read.step)) return "";
  for (GroupId group : elements_.groups()) {
    for (uint64_t round = read.step.value(); round <= elements_.steps(); ++round) {
      if (elements_.Includes(reply.values, group, round)) return "";
    }
  }
  return absl::StrCat(Describe(reply), ": group ", read.group.value(), " finished round ",
                      read.step.value(), " and was given values without step of that round");
}

bool ReadBounds::MayBeUnheardOf(const ShardReply& reply, const Contract& contract,
                                GroupId group) const {
  if (contract.kind == Contract::Kind::kBsp || contract.kind == Contract::Kind::kLocal ||
      !fates_.HasLost(reply.history, group)) {
    return false;
  }
  for (uint64_t step = 1; step <= elements_.steps(); ++step) {
    if (elements_.Includes(reply.values, group, step)) return false;
  }
  return true;
}

std::string ReadBounds::MissingStep(const ShardReply& reply, const Read& read,
                                    const Contract& contract, const LoopViews::View& view,
                                    StepFates::Presumed& presumed) const {
  std::optional<Step> required = contract.RequiredStep(read.step);
  if (read.max_staleness) {
    required = Step(read.step.value() - std::min(read.step.value(), *read.max_staleness));
  }
  const bool own = contract.kind == Contract::Kind::kSsp ||
                   (contract.kind == Contract::Kind::kBsp && !read.max_staleness);
  for (const LiveGroup& group : view.live) {
    uint64_t bound = required ? required->value() : 0;
    const bool is_own = own && group.id == read.group;
    if (is_own) bound = read.step.value();
    const bool has_just_pushed = reply.push != nullptr && group.id == read.group;
    if (!is_own && !has_just_pushed && MayBeUnheardOf(reply, contract, group.id)) continue;
    for (uint64_t step = group.first_step.value(); step <= bound; ++step) {
      if (elements_.Includes(reply.values, group.id, step) ||
          !fates_.IsOwed(reply.history, group.id, Step(step)) ||
          fates_.MayBeDiscarded(reply.history, group.id, Step(step), presumed)) {
        continue;
      }
      return absl::StrCat(Describe(reply), ": group ", read.group.value(), " finished step ",
                          read.step.value(), " and was given values without step ", step,
                          " of group ", group.id.value());
    }
  }
  return "";
}

}  // namespace covey::sim
