// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/work/pass_meetings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace covey::sim {

std::string PassMeetings::BarrierName(uint64_t pass, const proto::Group& group) {
  return absl::StrCat("end/", pass, "/", group.id(), "/", group.generation());
}

const proto::Group* PassMeetings::GroupOf(uint64_t node) const {
  const proto::ClusterView* view = published_();
  if (view == nullptr) return nullptr;
  for (const proto::Group& group : view->groups()) {
    const auto& members = group.members();
    if (group.state() == proto::Group::ACTIVE &&
        std::find(members.begin(), members.end(), node) != members.end()) {
      return &group;
    }
  }
  return nullptr;
}

void PassMeetings::OnSend(absl::Time, const Message& message) {
  const RequestKey asked{message.from().node.value(), message.envelope.header().request_id()};
  const RequestKey answered{message.to().node.value(), message.envelope.header().request_id()};
  if (message.envelope.has_barrier_request()) {
    const std::vector<std::string> parts =
        absl::StrSplit(message.envelope.barrier_request().name(), '/');
    Barrier barrier;
    if (parts.size() == 4 && absl::SimpleAtoi(parts[1], &barrier.pass) &&
        absl::SimpleAtoi(parts[3], &barrier.generation)) {
      barriers_[asked] = barrier;
    }
  } else if (message.envelope.has_work_request()) {
    if (!message.envelope.work_request().has_pass()) return;
    const uint64_t pass = named_[asked] = message.envelope.work_request().pass();
    Place& place = places_[asked.first];
    place.ended = std::max(place.ended, pass);
  } else if (message.envelope.has_barrier_reply() && StatusOf(message).ok()) {
    const auto barrier = barriers_.find(answered);
    if (barrier == barriers_.end()) return;
    Place& place = places_[answered.first];
    place.ended = std::max(place.ended, barrier->second.pass + 1);
    place.met = barrier->second.generation;
    barriers_.erase(barrier);
    ++met_;
  } else if (message.envelope.has_work_reply() && StatusOf(message).ok()) {
    NoteItems(message);
  }
}

void PassMeetings::NoteItems(const Message& message) {
  const uint64_t node = message.to().node.value();
  const auto named = named_.find({node, message.envelope.header().request_id()});
  if (named == named_.end()) return;
  const proto::Group* group = GroupOf(node);
  for (const proto::WorkItem& item : message.envelope.work_reply().items()) {
    if (item.pass() != named->second) {
      violations_.Add("passes", absl::StrCat("node ", node, " is given examples of pass ",
                                             item.pass(), ", and is in pass ", named->second));
    }
    Place& place = places_[node];
    place.taken = std::max(place.taken, item.pass());
    if (group == nullptr) {
      place.group = 0;
      continue;
    }
    if (std::exchange(place.group, group->id()) != group->id()) place.joined = group->generation();
    for (const uint64_t member : group->members()) {
      const auto other = places_.find(member);
      if (other == places_.end() || other->second.group != group->id()) continue;
      // It came after the others had met. They did not know of it, and in the product it would have
      // made no step.
      if (other->second.joined > place.met) continue;
      if (other->second.taken < item.pass() && other->second.ended <= other->second.taken) {
        violations_.Add(
            "passes",
            absl::StrCat("node ", node, " is given examples of pass ", item.pass(), ", but node ",
                         member, " of its group has not ended pass ", other->second.taken));
      }
    }
  }
}

}  // namespace covey::sim
