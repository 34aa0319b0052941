// SPDX-License-Identifier: Apache-2.0
#include "scheduler/work/data_cut.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

bool IsAlive(const proto::ClusterView& view, NodeId id) {
  const proto::Node* node = FindNode(view, id);
  return node != nullptr && node->state() == proto::Node::ALIVE;
}

// A step in which the item was trained, or a later one up to `last`; 0 = not told.
uint64_t StepOf(const proto::WorkItem& item, const proto::WorkRequest& request, uint64_t last) {
  if (item.step() > 0) return item.step();
  return request.finished_step() <= last ? request.finished_step() : 0;
}

// Whether the step, if it was told, is not part of the cut.
bool IsBeyond(uint64_t step, uint64_t last) {
  return step > 0 && (Planted(PlantedBug::kItemsPastCut) ? step - 1 : step) > last;
}

}  // namespace

GroupId DataCut::GroupOf(NodeId node) const {
  const proto::Group* group = FindActiveGroupOf(state_.view(), node);
  return group == nullptr ? GroupId() : GroupId(group->id());
}

uint64_t DataCut::LastStepOf(GroupId group) const {
  const auto last = last_steps_->find(group);
  return last == last_steps_->end() ? std::numeric_limits<uint64_t>::max() : last->second;
}

void DataCut::Note(const Message& message, MemberPasses::Outcome place) {
  const proto::WorkRequest& request = message.envelope.work_request();
  Account& account = accounts_.at(request.name());
  Report& report = account.reports[message.from().node];
  if (request.wanted() == 0) {
    report.is_away = report.is_away || place == MemberPasses::Outcome::kBegins;
  } else if (place != MemberPasses::Outcome::kLateCopy) {
    report.is_away = false;
  }
  if (request.finished().empty() && request.finished_step() == 0) return;
  if (last_steps_) NoteFinished(message, account);
  const uint64_t id = message.envelope.header().request_id();
  if (id < report.request_id) return;
  report.request_id = id;
  report.group = GroupOf(message.from().node);
  report.newest_step = request.finished_step();
  report.tells_steps = true;
  for (const proto::WorkItem& item : request.finished()) {
    report.newest_step = std::max(report.newest_step, item.step());
    if (item.step() == 0 && request.finished_step() == 0) report.tells_steps = false;
  }
  if (request.finished_step() > 0) report.finished_step = request.finished_step();
}

void DataCut::NoteFinished(const Message& message, Account& account) const {
  const proto::WorkRequest& request = message.envelope.work_request();
  const NodeId node = message.from().node;
  const uint64_t last = LastStepOf(GroupOf(node));
  for (const proto::WorkItem& item : request.finished()) {
    const uint64_t step = StepOf(item, request, last);
    const std::vector<RangeSet::Range> unfinished = account.ledger.Unfinished(item);
    if (IsBeyond(step, last)) {
      // What another node has trained before stays in the cut.
      account.later.Add(unfinished);
    } else if (step == 0 && !unfinished.empty()) {
      account.untold.insert(node);
    }
  }
  // After that: a node to which an example was given twice may report both trainings at once.
  for (const proto::WorkItem& item : request.finished()) {
    const uint64_t step = StepOf(item, request, last);
    if (step > 0 && !IsBeyond(step, last)) account.later.Remove(account.ledger.PositionsOf(item));
  }
}

void DataCut::Forget(NodeId node) {
  for (auto& [name, account] : accounts_) account.reports.erase(node);
}

absl::Status DataCut::Begin(std::map<GroupId, uint64_t> last_steps) {
  COVEY_CHECK(!last_steps_.has_value());
  last_steps_ = std::move(last_steps);
  absl::Status status;
  for (const auto& [name, account] : accounts_) {
    if (account.is_finished()) continue;
    for (const auto& [node, report] : account.reports) {
      const std::string who =
          absl::StrCat(NameOf(state_.view(), node), " has reported examples of '", name, "'");
      if (!report.tells_steps) {
        status.Update(absl::FailedPreconditionError(
            absl::StrCat(who,
                         " without the steps in which it has trained them, as programs without "
                         "HybridStep do; no cut can be made while they train")));
      } else if (report.newest_step > LastStepOf(report.group) &&
                 last_steps_->contains(report.group) && report.group == GroupOf(node)) {
        status.Update(absl::FailedPreconditionError(
            absl::StrCat(who, " of step ", report.newest_step, " of group ", report.group.value(),
                         ", and the cut ends with its step ", LastStepOf(report.group),
                         "; choose a later step")));
      }
    }
  }
  if (!status.ok()) End();
  return status;
}

void DataCut::End() {
  last_steps_.reset();
  for (auto& [name, account] : accounts_) {
    account.later = {};
    account.untold.clear();
  }
}

bool DataCut::HasReported(const Account& account, NodeId member, GroupId group) const {
  const auto found = account.reports.find(member);
  return found != account.reports.end() && found->second.group == group &&
         found->second.finished_step >= LastStepOf(group);
}

bool DataCut::HasPassed(const proto::Group& group) const {
  return std::any_of(accounts_.begin(), accounts_.end(), [&](const auto& account) {
    return std::any_of(group.members().begin(), group.members().end(), [&](uint64_t member) {
      return HasReported(account.second, NodeId(member), GroupId(group.id()));
    });
  });
}

std::optional<NodeId> DataCut::FirstUnreported(const Account& account) const {
  for (const auto& [id, last_step] : *last_steps_) {
    const proto::Group* group = FindGroup(state_.view(), id);
    if (group == nullptr) continue;
    for (const uint64_t member : group->members()) {
      const NodeId node(member);
      if (IsAlive(state_.view(), node) && !HasReported(account, node, id)) return node;
    }
  }
  return std::nullopt;
}

std::string DataCut::WhyImpossible() const {
  COVEY_CHECK(last_steps_.has_value());
  for (const auto& [name, account] : accounts_) {
    if (!account.untold.empty()) {
      return absl::StrCat(
          "the cut cannot be made: ", NameOf(state_.view(), *account.untold.begin()),
          " has reported examples of '", name, "' without the steps in which it has trained them");
    }
    if (!account.is_finished() || account.later.empty()) continue;
    if (const std::optional<NodeId> node = FirstUnreported(account)) {
      return absl::StrCat("all examples of '", name, "' were finished before ",
                          NameOf(state_.view(), *node), " had reported its last step of the cut");
    }
  }
  return "";
}

std::string DataCut::WaitsFor() const {
  COVEY_CHECK(last_steps_.has_value());
  const proto::ClusterView& view = state_.view();
  for (const auto& [id, last_step] : *last_steps_) {
    const proto::Group* group = FindGroup(view, id);
    if (group == nullptr) continue;
    const bool passed = HasPassed(*group);
    for (const auto& [name, account] : accounts_) {
      if (account.is_finished()) continue;
      for (const uint64_t member : group->members()) {
        const NodeId node(member);
        if (!IsAlive(view, node) || HasReported(account, node, id)) continue;
        const auto report = account.reports.find(node);
        const bool has_asked = report != account.reports.end();
        const bool tells_group = has_asked && report->second.group == id;
        if (has_asked && report->second.is_away) continue;
        if (!has_asked && !account.ledger.MayHoldSilently()) continue;
        if (!account.ledger.MayHold(node) && passed) continue;
        return absl::StrCat(NameOf(view, node), " has reported its examples of '", name,
                            "' up to step ", tells_group ? report->second.finished_step : 0,
                            " of group ", id.value(), ", and the cut ends with step ", last_step);
      }
    }
  }
  return "";
}

std::vector<proto::WorkLedger> DataCut::Ledgers() const {
  COVEY_CHECK(WaitsFor().empty());
  std::vector<proto::WorkLedger> ledgers;
  for (const proto::WorkLedger& record : state_.record().work()) {
    const Account& account = accounts_.at(record.name());
    account.ledger.WriteWithout(account.later, ledgers.emplace_back(record));
  }
  return ledgers;
}

}  // namespace covey::scheduler
