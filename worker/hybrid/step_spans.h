// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/trace/process_trace.h"

namespace covey::worker {

// Writes a program's steps into a trace: a span "step" for each, and in it "compute", "input" and
// "wait for TABLE". What the program does between its waits, and does not call input, is
// computation. A step that is under way when the trace begins is left out, and waits between two
// steps stand alone.
//
// Confined to the program's thread. `trace` outlives it.
class StepSpans {
 public:
  explicit StepSpans(ThreadTrace& trace) : trace_(trace) {}

  // A step begins, and the one before it ends. Steps are counted from 1.
  void Begin(absl::Time now, uint64_t step);
  // The program has waited for the values of a table.
  void Waited(absl::string_view table, absl::Time from, absl::Time to);
  // The program reads and prepares samples between these calls.
  void BeginInput(absl::Time now);
  void EndInput(absl::Time now);
  // The step ends; without effect when none is under way.
  void End(absl::Time now);

 private:
  void Add(absl::string_view name, absl::Time begin, absl::Time end);
  // Computation until now.
  void EndComputation(absl::Time now);

  ThreadTrace& trace_;
  uint64_t step_ = 0;  // 0 = none is under way, or it is left out
  bool in_input_ = false;
  absl::Time begin_;        // of the step
  absl::Time since_;        // of the computation
  absl::Time input_since_;  // of the input
};

}  // namespace covey::worker
