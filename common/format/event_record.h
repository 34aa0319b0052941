// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey {

// Event files, from which TensorBoard draws curves. A file is a sequence of records, and may grow
// while it is read:
//
//   bytes  content (little endian)
//   8      length of the event
//   4      masked CRC-32C of the length
//   …      the event: a protobuf of TensorFlow's type Event
//   4      masked CRC-32C of the event
//
// The masked form of a checksum is its bits rotated right by 15, plus 0xa282ead8. Fields of Event:
// wall_time 1 (double, seconds since 1970), step 2, file_version 3, summary 5; of Summary: value 1;
// of Value: tag 1, simple_value 2 (float).
//
// TensorBoard takes a file whose name contains "tfevents", and calls the folder of the file a run.
// All functions are pure.

// The first record of each file.
std::string EventFileStart(absl::Time wall_time);

// A point of a curve.
struct EventScalar {
  // The curve. Curves with the same text before a '/' stand together.
  absl::string_view tag;
  double value = 0;
};

// The points of several curves at one step. Precondition (checked): there are some.
std::string ScalarsRecord(absl::Time wall_time, uint64_t step,
                          std::span<const EventScalar> scalars);

}  // namespace covey
