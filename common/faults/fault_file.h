// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/faults/fault.h"

namespace covey {

// Faults as text: the same file for the simulator, for `covey chaos` and for tests of processes.
//
// A YAML list; one map per fault:
//
//   - at: 2.5s                       # since the beginning; 0s when left out
//     for: 300ms                     # then put right; without it, never
//     kind: partition
//     target: server-0               # as `covey status` names nodes
//     args: {other: worker-1}
//   - {at: 4s, kind: kill, target: server-1}
//   - {at: 4s, for: 1m, kind: loss, target: "*", args: {chance: 0.05}}
//
// | kind                                   | target   | args                    | `for`    |
// | -------------------------------------- | -------- | ----------------------- | -------- |
// | kill, stop, isolate                    | node     |                         | optional |
// | hang                                   | node     | loop                    | optional |
// | slow                                   | node     | factor                  | optional |
// | restart                                | node     |                         | no       |
// | partition, one-way-partition, clog     | node     | other                   | optional |
// | disconnect                             | node     | other                   | no       |
// | delay, jitter                          | node, *  | by; may have other      | optional |
// | loss, duplicate, corrupt               | node, *  | chance; may have other  | optional |
// | rate                                   | node, *  | bits_per_second; may .. | optional |
//
// What each does: FaultKind. Durations as in "300ms", "2.5s", "1h30m".

inline constexpr size_t kFaultFileBytesMax = 4 << 20;

// Parses the text of a plan; messages name `origin` as its source. Pure. INVALID_ARGUMENT: one line
// that begins with "ORIGIN:LINE: " and says what is wrong there.
absl::StatusOr<FaultPlan> ParseFaultPlan(absl::string_view text, absl::string_view origin);
// Parses the file at `path`. INVALID_ARGUMENT: also when it cannot be read.
absl::StatusOr<FaultPlan> LoadFaultPlan(const std::string& path);
// One fault, as in "{kind: kill, target: server-1}". Pure. INVALID_ARGUMENT: what is wrong.
absl::StatusOr<Fault> ParseFault(absl::string_view text);

// One line per fault, which ParseFaultPlan reads back as the same value. Pure.
std::string PrintFaultPlan(const FaultPlan& plan);
// One line, which ParseFault reads back as the same value: "{at: 4s, kind: kill, target:
// server-1}".
std::string PrintFault(const Fault& fault);

}  // namespace covey
