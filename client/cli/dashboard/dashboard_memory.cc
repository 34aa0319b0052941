// SPDX-License-Identifier: Apache-2.0
#include "client/cli/dashboard/dashboard_memory.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/dashboard/state_json.h"

namespace covey::cli {

using Json = nlohmann::ordered_json;

void DashboardMemory::Take(absl::Time now, const absl::StatusOr<proto::StatusReply>& reply) {
  if (reply.ok() != connected_) changed_ = now;
  connected_ = reply.ok();
  if (!reply.ok()) {
    error_ = std::string(reply.status().message());
    return;
  }
  error_.clear();
  contact_ = now;
  if (reply->uptime_ms() < uptime_ms_) ++restarts_;
  uptime_ms_ = reply->uptime_ms();
  state_ = DashboardJson(*reply);
  for (const proto::Event& event : reply->events()) {
    // An event is dated by the scheduler's uptime; the page counts from `start_`.
    const int64_t at = Milliseconds(now) - static_cast<int64_t>(reply->uptime_ms()) +
                       static_cast<int64_t>(event.at_ms());
    events_.push_back({.sequence = ++sequence_,
                       .content = {{"n", sequence_},
                                   {"at", at},
                                   {"kinds", std::vector<std::string>(event.kinds().begin(),
                                                                      event.kinds().end())},
                                   {"text", event.text()}}});
    if (events_.size() > kEventsMax) events_.pop_front();
  }
  if (now >= next_point_) AddPoint(now);
}

void DashboardMemory::AddPoint(absl::Time now) {
  next_point_ = now + point_interval_;
  double sum = 0;
  int shown = 0;
  Json groups = Json::object();
  for (const Json& group : state_["groups"]) {
    const double speed = group["samples_per_second"];
    if (group["state"] == "active") sum += speed;
    if (!group["started"].get<bool>() || group["state"] != "active" || shown == kGroupsMax)
      continue;
    ++shown;
    groups[absl::StrCat(group["id"].get<uint64_t>())] = {speed, group["loss"], group["samples"]};
  }
  points_.push_back({.sequence = ++sequence_,
                     .content = {{"n", sequence_},
                                 {"at", Milliseconds(now)},
                                 {"sum", sum},
                                 {"groups", std::move(groups)}}});
  if (points_.size() <= kPointsMax) return;
  std::deque<Entry> kept;
  for (size_t i = 0; i < points_.size(); i += 2) kept.push_back(std::move(points_[i]));
  points_ = std::move(kept);
  point_interval_ *= 2;
}

std::string DashboardMemory::JsonSince(absl::Time now, uint64_t since) const {
  Json json = {{"now", Milliseconds(now)},
               {"sequence", sequence_},
               {"contact",
                {{"connected", connected_},
                 {"since", Milliseconds(changed_)},
                 {"last", Milliseconds(contact_)},
                 {"error", error_},
                 {"restarts", restarts_}}},
               {"state", state_},
               {"events", Json::array()},
               {"points", Json::array()}};
  for (const Entry& event : events_) {
    if (event.sequence > since) json["events"].push_back(event.content);
  }
  for (const Entry& point : points_) {
    if (point.sequence > since) json["points"].push_back(point.content);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace covey::cli
