// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/returned_frames.h"

#include "tests/sim/network/message_description.h"

namespace covey::sim {

void ReturnedFrames::OnFramesKept(absl::Time, absl::string_view receiver, const Message& message,
                                  size_t frames) {
  violations_.Add("returned_frames",
                  absl::StrCat(receiver, " keeps ", frames, " lent frame", frames == 1 ? "" : "s",
                               " of ", Describe(message), "; it must copy what it keeps"));
}

}  // namespace covey::sim
