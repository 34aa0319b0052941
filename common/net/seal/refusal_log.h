// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/log.h"

namespace covey {

// Says why messages are refused, at most once per second, so that a peer that sends many of them
// does not fill the log. Actor-confined.
class RefusalLog {
 public:
  void Add(absl::Time now, absl::string_view reason) {
    ++since_;
    if (now < next_) return;
    next_ = now + absl::Seconds(1);
    LogWarning("messages_refused", {{"count", std::exchange(since_, 0)}, {"newest", reason}});
  }

 private:
  absl::Time next_ = absl::InfinitePast();
  uint64_t since_ = 0;  // refused since the last line
};

}  // namespace covey
