// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// What the dashboard knows between two requests of its page: the last state, the newest events and
// a history of throughput and loss. It keeps them when no scheduler answers, and says since when.
//
// Actor-confined. At most kEventsMax events and kPointsMax points; a point has at most kGroupsMax
// groups, those of the lowest numbers, and the sum of all. When there is no room for a point, every
// second one goes, and points come half as often from then on.
class DashboardMemory {
 public:
  static constexpr size_t kEventsMax = 500;
  static constexpr size_t kPointsMax = 600;
  static constexpr int kGroupsMax = 12;

  // Times are told to the page as milliseconds since `start`.
  explicit DashboardMemory(absl::Time start) : start_(start), contact_(start), changed_(start) {}

  // A reply of a scheduler, or why there is none.
  void Take(absl::Time now, const absl::StatusOr<proto::StatusReply>& reply);
  // For the page: the state, and the events and points numbered above `since`.
  std::string JsonSince(absl::Time now, uint64_t since) const;

 private:
  struct Entry {
    uint64_t sequence = 0;
    nlohmann::ordered_json content;
  };

  int64_t Milliseconds(absl::Time time) const { return absl::ToInt64Milliseconds(time - start_); }
  void AddPoint(absl::Time now);

  const absl::Time start_;
  absl::Time contact_;  // of the last reply
  absl::Time changed_;  // since when a scheduler answers, or does not
  bool connected_ = false;
  uint64_t restarts_ = 0;
  uint64_t uptime_ms_ = 0;
  std::string error_ = "no scheduler has answered yet";
  // Events and points share one sequence.
  uint64_t sequence_ = 0;
  nlohmann::ordered_json state_;
  std::deque<Entry> events_;
  std::deque<Entry> points_;
  absl::Duration point_interval_ = absl::Milliseconds(900);
  absl::Time next_point_ = absl::InfinitePast();
};

}  // namespace covey::cli
