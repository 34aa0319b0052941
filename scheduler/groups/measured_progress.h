// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "proto/scheduler.pb.h"

namespace covey::scheduler {

// A worker measures once per interval of about a second, and repeats the result in its heartbeats
// until the next measurement. Whether `now` is another one than `last`. Pure.
inline bool IsNewMeasurement(const proto::Progress& now, const proto::Progress& last) {
  return now.step() != last.step() && (now.compute_seconds() != last.compute_seconds() ||
                                       now.wait_seconds() != last.wait_seconds() ||
                                       now.samples_per_step() != last.samples_per_step() ||
                                       now.samples_per_second() != last.samples_per_second());
}

}  // namespace covey::scheduler
