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
  if (request.participants() < 1 || request.participants() > kNodesMax || request.round() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "barrier '", request.name(), "': ", request.participants(), " participants, round ",
        request.round(), ": both count from 1, up to ", kNodesMax, " participants"));
  }
  const auto finished = state_.barrier_rounds().find(request.name());
  const uint64_t next = (finished == state_.barrier_rounds().end() ? 0 : finished->second) + 1;
  if (request.round() > next) {
    return absl::FailedPreconditionError(
        absl::StrCat("barrier '", request.name(), "': round ", request.round(),
                     " cannot begin before round ", next, " has finished"));
  }
  const auto round = rounds_.find(request.name());
  if (request.round() == next && round != rounds_.end() && !round->second.arrivals.empty() &&
      round->second.participants != request.participants()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "barrier '", request.name(), "' round ", next, ": this node says ", request.participants(),
        " participants, node ", round->second.arrivals.begin()->first.value(), " said ",
        round->second.participants, ": all have to agree"));
  }
  if (next == 1 && round == rounds_.end() &&
      rounds_.size() + state_.barrier_rounds().size() >= kBarrierNamesMax) {
    return absl::ResourceExhaustedError(
        absl::StrCat("barrier '", request.name(), "': ", kBarrierNamesMax,
                     " names are in use; use one name for many rounds"));
  }
  return absl::OkStatus();
}

std::string Barriers::Arrive(absl::Time now, const Message& message, std::vector<Answer>& answers) {
  if (const absl::Status status = Check(message); !status.ok()) {
    answers.push_back({message, status});
    return "";
  }
  const proto::BarrierRequest& request = message.envelope.barrier_request();
  const auto finished = state_.barrier_rounds().find(request.name());
  if (finished != state_.barrier_rounds().end() && request.round() <= finished->second) {
    answers.push_back({message, absl::OkStatus()});
    return "";
  }

  Round& round = rounds_[request.name()];
  round.participants = request.participants();
  round.arrivals[message.from().node] = {message, now + DeadlineOf(request)};
  if (round.arrivals.size() < round.participants) return "";

  for (auto& [node, arrival] : round.arrivals) {
    answers.push_back({std::move(arrival.request), absl::OkStatus()});
  }
  rounds_.erase(request.name());
  (*state_.mutable_barrier_rounds())[request.name()] = request.round();
  return absl::StrCat("barrier '", request.name(), "' round ", request.round(), ": all ",
                      request.participants(), " arrived");
}

void Barriers::Expire(absl::Time now, std::vector<Answer>& answers) {
  for (auto at = rounds_.begin(); at != rounds_.end();) {
    Round& round = at->second;
    std::vector<NodeId> late;
    for (const auto& [node, arrival] : round.arrivals) {
      if (now >= arrival.deadline) late.push_back(node);
    }
    // Whoever has arrived by now is not missing, even if it gives up in the same moment.
    std::vector<absl::Status> reasons;
    for (NodeId node : late) reasons.push_back(MissingStatus(at->first, round, node));
    for (size_t i = 0; i < late.size(); ++i) {
      answers.push_back({std::move(round.arrivals[late[i]].request), reasons[i]});
      round.arrivals.erase(late[i]);
    }
    at = round.arrivals.empty() ? rounds_.erase(at) : std::next(at);
  }
}

absl::Status Barriers::MissingStatus(const std::string& name, const Round& round,
                                     NodeId caller) const {
  std::set<proto::Role> roles;
  for (const proto::Node& node : state_.view().nodes()) {
    if (round.arrivals.contains(NodeId(node.id()))) roles.insert(node.role());
  }
  // Any node of a role that takes part may be meant; dead ones only while nobody has their place.
  std::vector<std::string> missing;
  for (const proto::Node& node : state_.view().nodes()) {
    if (!roles.contains(node.role()) || round.arrivals.contains(NodeId(node.id()))) continue;
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
      round.arrivals.at(caller).request.envelope.barrier_request();
  return absl::DeadlineExceededError(absl::StrCat(
      "barrier '", name, "' round ", request.round(), ": ", round.arrivals.size(), " of ",
      round.participants, " arrived within ", absl::FormatDuration(DeadlineOf(request)),
      "; not arrived: ",
      missing.empty() ? "nodes that have not registered yet" : absl::StrJoin(missing, ", "),
      more > 0 ? absl::StrCat(" and ", more, " more") : ""));
}

void Barriers::Forget(NodeId node, std::vector<Answer>& answers) {
  for (auto at = rounds_.begin(); at != rounds_.end();) {
    auto& arrivals = at->second.arrivals;
    if (const auto arrival = arrivals.find(node); arrival != arrivals.end()) {
      answers.push_back(
          {std::move(arrival->second.request),
           absl::AbortedError(absl::StrCat("barrier '", at->first, "': node ", node.value(),
                                           " has departed, its arrival is withdrawn"))});
      arrivals.erase(arrival);
    }
    at = arrivals.empty() ? rounds_.erase(at) : std::next(at);
  }
}

absl::Time Barriers::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, round] : rounds_) {
    for (const auto& [node, arrival] : round.arrivals) next = std::min(next, arrival.deadline);
  }
  return next;
}

}  // namespace covey::scheduler
