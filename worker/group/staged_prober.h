// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/buffer.h"

namespace covey::worker {

// Measures how long probes to several peers take, to one peer after the other. A peer returns each
// probe at once, without its bytes.
//
//   first contact (not counted: it opens the connection) -> one stage after the other, each when
//   all probes of the one before are back -> the next peer
//
// Waits are bounded: first contact is tried again and then given up, and a later probe that is late
// counts as its deadline; both end the measurement of that peer.
//
// Actor-confined. Deterministic: times come from `now`.
class StagedProber {
 public:
  struct Stage {
    size_t bytes = 0;
    uint32_t messages = 1;  // at once
  };
  struct Options {
    std::span<const Stage> stages;  // outlive the prober
    // First contact is tried again at this interval, since the peer may not know of this process
    // yet, until contact_max has passed.
    absl::Duration contact_every;
    absl::Duration contact_max;
    // For the probes of a later stage.
    absl::Duration patience;
    // A peer for which a stage with bytes takes longer is known well enough.
    absl::Duration slow;
  };

  // Peers are known by their index. Numbers of probes grow on.
  void Begin(absl::Time now, size_t peers, const Options& options);
  // Nothing is waited for any more; what was measured stays.
  void End();

  struct Probe {
    size_t peer = 0;
    uint64_t number = 0;  // from 1
    size_t bytes = 0;
  };
  // The probes to send since the last call.
  std::vector<Probe> TakeProbes() { return std::exchange(probes_, {}); }
  // It came back. Others than the next one that is out have no effect.
  void Echo(absl::Time now, size_t peer, uint64_t number);
  void Wake(absl::Time now);
  // InfiniteFuture() when nothing is out.
  absl::Time NextWake() const { return deadline_; }

  bool done() const { return peer_ >= peers_; }

  // One stage with one peer.
  struct Trip {
    size_t peer = 0;
    Stage stage;
    // Until the last probe was back; of a late one, until it was given up.
    absl::Duration took;
    bool is_late = false;
  };
  const std::vector<Trip>& trips() const { return trips_; }

 private:
  // That of first contact has no bytes.
  Stage stage() const { return step_ == 0 ? Stage{} : options_.stages[step_ - 1]; }
  void BeginPeer(absl::Time now);
  void BeginStage(absl::Time now);
  void Send(absl::Time now);
  void EndStage(absl::Duration took, bool is_late);

  Options options_;
  size_t peers_ = 0;
  size_t peer_ = 0;
  size_t step_ = 0;        // 0 = first contact, i = stage i - 1
  uint64_t number_ = 0;    // of the last probe
  uint64_t returned_ = 0;  // of the last one that is back or that no one waits for any more
  absl::Time sent_;
  absl::Time contact_until_;
  absl::Time deadline_ = absl::InfiniteFuture();
  std::vector<Probe> probes_;
  std::vector<Trip> trips_;
};

// What a probe of this many bytes carries.
Buffer ProbeFrame(size_t bytes);

}  // namespace covey::worker
