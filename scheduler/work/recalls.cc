// SPDX-License-Identifier: Apache-2.0
#include "scheduler/work/recalls.h"

#include <utility>

#include "scheduler/work/request_check.h"

namespace covey::scheduler {
namespace {

uint64_t IdOf(const Message& request) { return request.envelope.header().request_id(); }

}  // namespace

void Recalls::NoteGiven(absl::Time now, NodeId node) {
  Turn& turn = turns_[node];
  turn.given = now;
  turn.lasted.reset();
}

bool Recalls::NoteReturned(NodeId node) {
  const auto turn = turns_.find(node);
  return turn != turns_.end() && std::exchange(turn->second.is_recalled, false);
}

std::optional<Message> Recalls::Wait(absl::Time now, const Message& request) {
  const NodeId node = request.from().node;
  std::optional<Message> other;
  if (const Message* earlier = WaitOf(node);
      earlier != nullptr && IdOf(*earlier) != IdOf(request)) {
    other = *earlier;
  }
  waits_[node] = request;
  deadlines_.push_back({.at = now + kWaitMax, .node = node, .request_id = IdOf(request)});
  return other;
}

const Message* Recalls::WaitOf(NodeId node) const {
  const auto wait = waits_.find(node);
  return wait == waits_.end() ? nullptr : &wait->second;
}

std::optional<Message> Recalls::Recall(absl::Time now, const Message& request) {
  const auto own = turns_.find(request.from().node);
  absl::Duration lasted = kUnknownTurn;
  if (own != turns_.end()) {
    if (!own->second.lasted) own->second.lasted = now - own->second.given;
    lasted = *own->second.lasted;
  }
  const auto pass = PassOf(request.envelope.work_request());
  std::optional<NodeId> slowest;
  absl::Time given = now - lasted;
  for (const auto& [node, wait] : waits_) {
    const absl::Time its_given = turns_.at(node).given;
    if (its_given > given || PassOf(wait.envelope.work_request()) != pass) continue;
    slowest = node;
    given = its_given;
  }
  if (!slowest) return std::nullopt;
  turns_.at(*slowest).is_recalled = true;
  return EndWait(*slowest);
}

std::optional<Message> Recalls::EndWait(NodeId node) {
  const auto wait = waits_.find(node);
  if (wait == waits_.end()) return std::nullopt;
  std::optional<Message> request = std::move(wait->second);
  waits_.erase(wait);
  return request;
}

std::optional<Message> Recalls::Forget(NodeId node) {
  turns_.erase(node);
  return EndWait(node);
}

std::vector<Message> Recalls::TakeExpired(absl::Time now) {
  std::vector<Message> expired;
  for (; NextExpiry() <= now; deadlines_.pop_front()) {
    const Deadline& due = deadlines_.front();
    const Message* wait = WaitOf(due.node);
    if (wait != nullptr && IdOf(*wait) == due.request_id) expired.push_back(*EndWait(due.node));
  }
  return expired;
}

}  // namespace covey::scheduler
