// SPDX-License-Identifier: Apache-2.0
#include "client/cli/events/events_view.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/console/figures.h"

namespace covey::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kKinds[] = {"node",     "group",    "straggler", "table", "shards",
                                  "snapshot", "producer", "work",      "job",   "other"};

// Whether `name` stands in `text` as a whole: worker-1 is not in "worker-10 left".
bool Names(absl::string_view text, absl::string_view name) {
  const auto is_part = [](char letter) {
    return absl::ascii_isalnum(static_cast<unsigned char>(letter)) || letter == '-';
  };
  for (size_t at = text.find(name); at != absl::string_view::npos; at = text.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_part(text[at - 1])) && (end == text.size() || !is_part(text[end]))) {
      return true;
    }
  }
  return false;
}

std::string JsonLine(const Json& json) {
  return absl::StrCat(json.dump(-1, ' ', false, Json::error_handler_t::replace), "\n");
}

absl::Duration AgeOf(const proto::Event& event, const proto::StatusReply& status) {
  return absl::Milliseconds(static_cast<int64_t>(status.uptime_ms()) -
                            static_cast<int64_t>(event.at_ms()));
}

}  // namespace

std::vector<std::string> KindsOfEvent(const proto::Event& event) {
  if (event.kinds().empty()) return {"other"};
  return {event.kinds().begin(), event.kinds().end()};
}

absl::Status EventFilter::Check() const {
  if (kind.empty() || std::find(std::begin(kKinds), std::end(kKinds), kind) != std::end(kKinds)) {
    return absl::OkStatus();
  }
  std::string all;
  for (const char* each : kKinds) absl::StrAppend(&all, all.empty() ? "" : ", ", each);
  return absl::InvalidArgumentError(absl::StrCat("--kind is '", kind, "'; choose one of ", all));
}

bool EventFilter::Shows(const proto::Event& event, absl::Duration age) const {
  const std::vector<std::string> kinds = KindsOfEvent(event);
  return (kind.empty() || std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) &&
         (node.empty() || Names(event.text(), node)) && (!since.has_value() || age <= *since);
}

std::string EventPrinter::Print(const proto::StatusReply& status) {
  std::string text;
  if (status.uptime_ms() < uptime_ms_) {
    last_ = 0;
    text = format_ == EventFormat::kJson
               ? JsonLine({{"restarted", true}})
               : "-- the scheduler has been restarted: its events begin again --\n";
  }
  uptime_ms_ = status.uptime_ms();
  for (const proto::Event& event : status.events()) {
    if (event.sequence() <= last_) continue;
    if (event.sequence() > last_ + 1) text += PrintDropped(event.sequence() - last_ - 1);
    last_ = event.sequence();
    // Later events are new, whatever the clocks say.
    const absl::Duration age = is_first_ ? AgeOf(event, status) : absl::ZeroDuration();
    if (filter_.Shows(event, age)) text += PrintEvent(event);
  }
  is_first_ = false;
  return text;
}

std::string EventPrinter::PrintEvent(const proto::Event& event) const {
  const double at = static_cast<double>(event.at_ms()) / 1000;
  if (format_ == EventFormat::kJson) {
    return JsonLine({{"sequence", event.sequence()},
                     {"at_seconds", at},
                     {"kinds", KindsOfEvent(event)},
                     {"text", event.text()}});
  }
  return absl::StrFormat("%12s  %-9s  %s\n", ShowSeconds(at),
                         absl::StrJoin(KindsOfEvent(event), ","), event.text());
}

std::string EventPrinter::PrintDropped(uint64_t dropped) const {
  if (format_ == EventFormat::kJson) return JsonLine({{"dropped", dropped}});
  return absl::StrCat("-- the scheduler no longer keeps ", ShowCount(dropped),
                      dropped == 1 ? " event" : " events", " here --\n");
}

}  // namespace covey::cli
