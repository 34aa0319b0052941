// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// proto::Event.kinds; "other" where there is none, as from schedulers before 0.2.0. Pure.
std::vector<std::string> KindsOfEvent(const proto::Event& event);

// Which events are shown.
struct EventFilter {
  std::string kind;  // empty = all
  std::string node;  // named in the text; empty = all
  // Age at the first reply; absent = any.
  std::optional<absl::Duration> since;

  // INVALID_ARGUMENT: there is no such kind.
  absl::Status Check() const;
  bool Shows(const proto::Event& event, absl::Duration age) const;
};

enum class EventFormat { kText, kJson };

// Prints the events of one reply after the other, oldest first, each once. Says how many events the
// scheduler has forgotten before they could be seen, and when it has been restarted. Confined to
// one thread.
class EventPrinter {
 public:
  EventPrinter(EventFilter filter, EventFormat format)
      : filter_(std::move(filter)), format_(format) {}

  // A line for each event: of text "4.2 s  node  worker-2 dead"; of JSON an object of "sequence",
  // "at_seconds", "kinds" and "text", or "dropped", or "restarted". Valid UTF-8.
  std::string Print(const proto::StatusReply& status);

 private:
  std::string PrintEvent(const proto::Event& event) const;
  std::string PrintDropped(uint64_t dropped) const;

  const EventFilter filter_;
  const EventFormat format_;
  bool is_first_ = true;
  uint64_t last_ = 0;
  uint64_t uptime_ms_ = 0;
};

}  // namespace covey::cli
