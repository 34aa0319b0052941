// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/time/time.h"

namespace covey {

// How soon to look again whether the transport has let frames go. The transport drops its handle on
// a buffer from a thread of its own, without a word (Buffer::IsUnique), so the owner of memory that
// is being sent asks again. Frames have nearly always been released by the first time.
inline constexpr absl::Duration kReleasePoll = absl::Microseconds(200);

}  // namespace covey
