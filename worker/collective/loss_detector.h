// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace covey::worker {

// Notices that slices of other members were lost with a connection.
//
// Order holds between two members until a reconnect. So when nothing comes for longer than usual, a
// member asks those that it waits for how many slices they have sent; a slice that was sent before
// the answer, and is not here when the answer comes, will not come. A member that is merely slow
// has sent no more than came, and is waited for.
//
//   listening ── silent for longer than usual: query ──▶ asked ── answer counts more: lost
//       ▲                                                  │
//       └──────────── a slice, or the answer counts no more ┘
//
// The usual time is a smoothed average of what collectives take, within limits. Actor-confined.
// Deterministic: times come from `now`.
class LossDetector {
 public:
  static constexpr absl::Duration kSilenceMin = absl::Milliseconds(500);
  static constexpr absl::Duration kSilenceMax = absl::Seconds(10);

  // A new round of a group of this size: no slice of it has come. The usual time stays.
  void Begin(uint32_t members) { received_.assign(members, 0); }
  void SliceCame(absl::Time now, uint32_t rank) {
    ++received_[rank];
    progress_ = now;
  }
  void CollectiveBegan(absl::Time now) { progress_ = now; }
  void CollectiveTook(absl::Duration time);

  // When to ask those that collectives wait for, if any does.
  absl::Time NextQuery() const { return progress_ + Silence(); }
  // They are being asked; the next query is a silence away.
  void Asked(absl::Time now) { progress_ = now; }
  // The member has sent this many slices in this round: some of them are lost.
  bool HasLost(uint32_t rank, uint64_t sent) const { return received_[rank] < sent; }

 private:
  absl::Duration Silence() const;

  std::vector<uint64_t> received_;  // by rank
  // When a slice came last, or a collective began, or a query was sent.
  absl::Time progress_ = absl::InfinitePast();
  double usual_seconds_ = 0;
};

}  // namespace covey::worker
