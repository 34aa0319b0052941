// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: a receiver that keeps a lent frame beyond the call in which it was delivered copies it
// first (Buffer::Kept). Otherwise held pushes and late peers would occupy the memory of senders.
class ReturnedFrames : public Observer {
 public:
  explicit ReturnedFrames(Violations& violations) : violations_(violations) {}
  void OnFramesKept(absl::Time now, absl::string_view receiver, const Message& message,
                    size_t frames) override;

 private:
  Violations& violations_;
};

}  // namespace covey::sim
