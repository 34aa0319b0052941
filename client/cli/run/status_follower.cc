// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/status_follower.h"

namespace covey::cli {

void StatusFollower::Follow(absl::Time now,
                            absl::FunctionRef<void(const proto::StatusReply&)> take) {
  if (const auto status = poller_.Take(); status.has_value()) {
    if (status->ok()) take(**status);
    if (finished_.has_value() && requested_ >= *finished_) had_final_ = true;
  }
  if (now >= next_ && !poller_.asking()) {
    next_ = now + kInterval;
    requested_ = now;
    poller_.Ask();
  }
}

bool StatusFollower::AwaitsFinal(absl::Time now) {
  if (had_final_) return false;
  if (!finished_.has_value()) {
    finished_ = now;
    next_ = now;
  }
  if (now >= *finished_ + kFinalMax) had_final_ = true;
  return !had_final_;
}

std::optional<absl::Time> StatusFollower::final_deadline() const {
  if (!finished_.has_value() || had_final_) return std::nullopt;
  return *finished_ + kFinalMax;
}

}  // namespace covey::cli
