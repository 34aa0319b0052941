// SPDX-License-Identifier: Apache-2.0
#include "scheduler/barrier.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/cluster/limits.h"

namespace covey::scheduler {
namespace {

constexpr size_t kMissingNamed = 8;

absl::Duration DeadlineOf(const proto::BarrierRequest& request) {
  return std::min(absl::Milliseconds(request.deadline_ms()), kBarrierMax);
}

}  // namespace

absl::Status Barriers::Check(const Message& message) const {
  const proto::BarrierRequest& request = message.envelope.barrier_request();
  if (request.name().empty() || request.name().size() > kNameBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("barrier: a name has 1 to ", kNameBytesMax, " bytes"));
  }
  if (request.participants() < 1 || request.participants() > kNodesMax) {
    return absl::InvalidArgumentError(absl::StrCat("barrier '", request.name(),
                                                   "': ", request.participants(),
                                                   " participants; choose 1 to ", kNodesMax));
  }
  const auto gathering = gatherings_.find(request.name());
  if (gathering != gatherings_.end()) {
    const auto& [participants, arrivals] = gathering->second;
    if (participants == request.participants()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("barrier '", request.name(), "': this node says ", request.participants(),
                     " participants, node ", arrivals.begin()->first.value(), " said ",
                     participants, ": all have to agree"));
  }
  const bool known = state_.record().barriers().contains(request.name());
  if (!known && gatherings_.size() + state_.record().barriers().size() >= kBarrierNamesMax) {
    return absl::ResourceExhaustedError(absl::StrCat("barrier '", request.name(),
                                                     "': ", kBarrierNamesMax,
                                                     " names are in use; use one name many times"));
  }
  return absl::OkStatus();
}

bool Barriers::WasReleased(const Message& request) const {
  const auto released = state_.record().barriers().find(request.envelope.barrier_request().name());
  if (released == state_.record().barriers().end()) return false;
  const auto& ids = released->second.request_ids();
  const auto newest = ids.find(request.from().node.value());
  // Request ids of a node grow, so a request with an older id was released before, or given up.
  return newest != ids.end() && request.envelope.header().request_id() <= newest->second;
}

void Barriers::Arrive(absl::Time now, const Message& message, std::vector<Answer>& answers) {
  if (WasReleased(message)) {
    answers.push_back({message, absl::OkStatus()});
    return;
  }
  if (const absl::Status status = Check(message); !status.ok()) {
    answers.push_back({message, status});
    return;
  }
  const proto::BarrierRequest& request = message.envelope.barrier_request();
  Gathering& gathering = gatherings_[request.name()];
  gathering.participants = request.participants();
  gathering.arrivals[message.from().node] = {message, now + DeadlineOf(request)};
  if (gathering.arrivals.size() < gathering.participants) return;

  Transaction change(state_);
  proto::ReleasedNodes& released = (*change.EditUnpublished().mutable_barriers())[request.name()];
  for (auto& [node, arrival] : gathering.arrivals) {
    (*released.mutable_request_ids())[node.value()] =
        arrival.request.envelope.header().request_id();
    answers.push_back({std::move(arrival.request), absl::OkStatus()});
  }
  gatherings_.erase(request.name());
  change.Add(BarrierReleased{.name = request.name(), .participants = request.participants()});
  change.Commit();
}

void Barriers::Expire(absl::Time now, std::vector<Answer>& answers) {
  for (auto at = gatherings_.begin(); at != gatherings_.end();) {
    Gathering& gathering = at->second;
    std::vector<NodeId> late;
    for (const auto& [node, arrival] : gathering.arrivals) {
      if (now >= arrival.deadline) late.push_back(node);
    }
    // A node that has arrived by now is not missing, even if it gives up in the same moment.
    std::vector<absl::Status> reasons;
    for (NodeId node : late) reasons.push_back(MissingStatus(at->first, gathering, node));
    for (size_t i = 0; i < late.size(); ++i) {
      answers.push_back({std::move(gathering.arrivals[late[i]].request), reasons[i]});
      gathering.arrivals.erase(late[i]);
    }
    at = gathering.arrivals.empty() ? gatherings_.erase(at) : std::next(at);
  }
}

absl::Status Barriers::MissingStatus(const std::string& name, const Gathering& gathering,
                                     NodeId caller) const {
  std::set<proto::Role> roles;
  for (const proto::Node& node : state_.view().nodes()) {
    if (gathering.arrivals.contains(NodeId(node.id()))) roles.insert(node.role());
  }
  // Any node of a participating role may be the missing one; a dead node counts only while no other
  // node has its rank.
  std::vector<std::string> missing;
  for (const proto::Node& node : state_.view().nodes()) {
    if (!roles.contains(node.role()) || gathering.arrivals.contains(NodeId(node.id()))) continue;
    const bool replaced = std::any_of(
        state_.view().nodes().begin(), state_.view().nodes().end(), [&](const proto::Node& other) {
          return other.id() > node.id() && other.name() == node.name();
        });
    if (replaced) continue;
    missing.push_back(node.state() == proto::Node::ALIVE
                          ? node.name()
                          : absl::StrCat(node.name(), " (", node.departure(), ")"));
  }
  const size_t more = missing.size() > kMissingNamed ? missing.size() - kMissingNamed : 0;
  missing.resize(missing.size() - more);
  const proto::BarrierRequest& request =
      gathering.arrivals.at(caller).request.envelope.barrier_request();
  return absl::DeadlineExceededError(absl::StrCat(
      "barrier '", name, "': ", gathering.arrivals.size(), " of ", gathering.participants,
      " arrived within ", absl::FormatDuration(DeadlineOf(request)), "; not arrived: ",
      missing.empty() ? "nodes that have not registered yet" : absl::StrJoin(missing, ", "),
      more > 0 ? absl::StrCat(" and ", more, " more") : ""));
}

void Barriers::ForgetReleases(NodeId node) {
  Transaction change(state_);
  auto& barriers = *change.EditUnpublished().mutable_barriers();
  for (auto at = barriers.begin(); at != barriers.end();) {
    auto& ids = *at->second.mutable_request_ids();
    ids.erase(node.value());
    at = ids.empty() ? barriers.erase(at) : std::next(at);
  }
  change.Commit();
}

void Barriers::OnDeparture(NodeId node, std::vector<Answer>& answers) {
  ForgetReleases(node);
  for (auto at = gatherings_.begin(); at != gatherings_.end();) {
    auto& arrivals = at->second.arrivals;
    if (const auto arrival = arrivals.find(node); arrival != arrivals.end()) {
      answers.push_back(
          {std::move(arrival->second.request),
           absl::AbortedError(absl::StrCat("barrier '", at->first, "': node ", node.value(),
                                           " has departed, its arrival is withdrawn"))});
      arrivals.erase(arrival);
    }
    at = arrivals.empty() ? gatherings_.erase(at) : std::next(at);
  }
}

absl::Time Barriers::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, gathering] : gatherings_) {
    for (const auto& [node, arrival] : gathering.arrivals) next = std::min(next, arrival.deadline);
  }
  return next;
}

}  // namespace covey::scheduler
