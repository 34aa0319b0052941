// SPDX-License-Identifier: Apache-2.0
#include "scheduler/work/member_passes.h"

#include <algorithm>

namespace covey::scheduler {

MemberPasses::Outcome MemberPasses::Note(NodeId node, uint64_t request_id, uint64_t pass) {
  Place& place = nodes_[node];
  const std::optional<uint64_t> named =
      pass < passes_ ? std::optional<uint64_t>(pass) : std::nullopt;
  const bool is_another = place.pass != named;
  if (request_id < place.request_id) return is_another ? Outcome::kLateCopy : Outcome::kStays;
  place = {.request_id = request_id, .pass = named};
  return is_another ? Outcome::kBegins : Outcome::kStays;
}

std::optional<uint64_t> MemberPasses::LatestOf(const proto::Group* group, NodeId node) const {
  std::optional<uint64_t> latest;
  const auto look_at = [&](NodeId member) {
    // Nothing is less than any pass.
    const auto found = nodes_.find(member);
    if (found != nodes_.end()) latest = std::max(latest, found->second.pass);
  };
  look_at(node);
  if (group == nullptr) return latest;
  for (const uint64_t member : group->members()) look_at(NodeId(member));
  return latest;
}

std::optional<uint64_t> MemberPasses::Latest() const {
  std::optional<uint64_t> latest;
  for (const auto& [node, place] : nodes_) latest = std::max(latest, place.pass);
  return latest;
}

bool MemberPasses::MayBeUnnamed(absl::Time now, const proto::Group* group, NodeId node) const {
  if (now >= named_by_ || group == nullptr) return false;
  return std::any_of(group->members().begin(), group->members().end(), [&](uint64_t member) {
    const NodeId id(member);
    return id != node && id < first_newcomer_ && !nodes_.contains(id);
  });
}

}  // namespace covey::scheduler
