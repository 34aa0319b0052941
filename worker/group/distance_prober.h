// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/time/time.h"

namespace covey::worker {

// How far every other member is from this one: the shortest of a few round trips of empty probes to
// each. For groups whose labels do not say where members are (common/grouping/measured_racks.h).
//
//   to all at once: first contact (not counted: it opens the connection, and the peer may not know
//   of the group yet) -> as peers answer, at most kPeersAtATime at once: kRounds probes, one after
//   the other
//
// Few at once, because answers that wait for each other would all look equally far. A probe that is
// not back within kPatience ends the measurement of its peer, and after kFirstContact everything
// ends; what is not known by then stays 0.
//
// Actor-confined. Deterministic: times come from `now`.
class DistanceProber {
 public:
  static constexpr size_t kPeersAtATime = 4;
  static constexpr size_t kRounds = 3;
  static constexpr absl::Duration kFirstContact = absl::Seconds(2);
  static constexpr absl::Duration kPatience = absl::Milliseconds(100);

  // The distances of member `rank` of `size`.
  void Begin(absl::Time now, uint32_t rank, uint32_t size);

  struct Probe {
    uint32_t peer = 0;
    uint64_t number = 0;  // from 1
  };
  // What is to be sent since the last call.
  std::vector<Probe> TakeProbes();
  // It came back. Others than the last one to that peer have no effect.
  void Echo(absl::Time now, uint32_t peer, uint64_t number);
  void Wake(absl::Time now);
  // InfiniteFuture() when nothing is out.
  absl::Time NextWake() const;

  bool done() const { return open_ == 0; }
  // Seconds to each member, by rank; 0 = not known, and to oneself.
  const std::vector<float>& seconds() const { return seconds_; }

 private:
  struct Peer {
    uint64_t number = 0;  // of the probe that is out; 0 = none
    size_t answers = 0;   // of first contact and rounds
    absl::Time sent;
    absl::Time deadline = absl::InfiniteFuture();
    bool over = false;
  };

  void Send(absl::Time now, uint32_t rank, absl::Duration patience);
  void End(Peer& peer);
  void Next(absl::Time now);

  std::vector<Peer> peers_;        // by rank
  std::deque<uint32_t> answered_;  // first contact, and wait for their rounds
  size_t probing_ = 0;             // peers whose rounds are under way
  size_t open_ = 0;                // peers that are not over
  uint64_t last_number_ = 0;
  std::vector<Probe> probes_;
  std::vector<float> seconds_;
};

}  // namespace covey::worker
