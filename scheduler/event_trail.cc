// SPDX-License-Identifier: Apache-2.0
#include "scheduler/event_trail.h"

#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace covey::scheduler {

void EventTrail::Add(absl::Duration age, Decision decision) {
  if (events_.size() == capacity_) events_.pop_front();
  proto::Event& event = events_.emplace_back();
  event.set_sequence(next_sequence_++);
  event.set_at_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(age)));
  event.set_text(std::move(decision.text));
  for (const absl::string_view kind : decision.kinds) event.add_kinds(std::string(kind));
}

void EventTrail::CopyAfter(uint64_t after, proto::StatusReply& reply) const {
  for (const proto::Event& event : events_) {
    if (event.sequence() > after) *reply.add_events() = event;
  }
}

}  // namespace covey::scheduler
