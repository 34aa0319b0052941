// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/random.h"

namespace covey {

// The simulated world's clock and its queue of events. Time jumps from event to event. Two events
// at the same time run in the order in which they were scheduled, so a seed has one history.
//
// Actor-confined. Deterministic: it depends only on its seed and its calls.
class Simulator {
 public:
  // The streams that one seed is split into, so that a change in one leaves the others alone.
  enum class Stream : uint64_t {
    kConfig = 1,
    kWorkload,
    kNetwork,
    kFaults,
    kDisk,
    kProcess,
    kStepTimes
  };

  explicit Simulator(uint64_t seed) : seed_(seed) {}

  absl::Time now() const { return now_; }
  // `which` distinguishes the streams of a family, such as one stream per process.
  Random Draws(Stream stream, uint64_t which = 0) const;

  // Events cannot be canceled: the objects that they use must outlive the simulator's last run.
  void At(absl::Time when, std::function<void()> work);
  void After(absl::Duration delay, std::function<void()> work) {
    At(now_ + delay, std::move(work));
  }

  // Runs the next event, if it is due by `until`; otherwise moves the clock to `until` and returns
  // false.
  bool RunOne(absl::Time until);
  uint64_t events() const { return events_; }

  // The digest of the history so far: of the time of every event, and of every noted value.
  void Note(uint64_t value) { digest_ = MixBits(digest_ ^ value); }
  void Note(absl::string_view bytes);
  uint64_t digest() const { return digest_; }

  // Counts a rare event by name, to show whether the faults still reach the code.
  void Count(absl::string_view event) { ++counts_[std::string(event)]; }
  const std::map<std::string, uint64_t>& counts() const { return counts_; }

  // Turns the trace on: `sink` gets each line as it happens.
  void SetTrace(std::function<void(absl::Time, const std::string&)> sink) {
    trace_ = std::move(sink);
  }
  bool tracing() const { return trace_ != nullptr; }
  void Trace(const std::string& line) const {
    if (trace_) trace_(now_, line);
  }

 private:
  struct Event {
    absl::Time when;
    uint64_t sequence;
    std::function<void()> work;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.when != b.when ? a.when > b.when : a.sequence > b.sequence;
    }
  };

  const uint64_t seed_;
  absl::Time now_ = absl::UnixEpoch();
  uint64_t next_sequence_ = 0;
  uint64_t events_ = 0;
  uint64_t digest_ = 0;
  std::priority_queue<Event, std::vector<Event>, Later> queue_;
  std::map<std::string, uint64_t> counts_;
  std::function<void(absl::Time, const std::string&)> trace_;
};

}  // namespace covey
