// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/step_spans.h"

#include "absl/strings/str_cat.h"

namespace covey::worker {

void StepSpans::Begin(absl::Time now, uint64_t step) {
  End(now);
  if (!trace_.on()) return;
  step_ = step;
  in_input_ = false;
  begin_ = now;
  since_ = now;
}

void StepSpans::Waited(absl::string_view table, absl::Time from, absl::Time to) {
  if (!trace_.on()) return;
  if (step_ != 0 && !in_input_) EndComputation(from);
  Add(absl::StrCat("wait for ", table), from, to);
  since_ = to;
}

void StepSpans::BeginInput(absl::Time now) {
  if (step_ == 0) return;
  EndComputation(now);
  in_input_ = true;
  input_since_ = now;
}

void StepSpans::EndInput(absl::Time now) {
  if (step_ == 0 || !in_input_) return;
  in_input_ = false;
  Add("input", input_since_, now);
  since_ = now;
}

void StepSpans::End(absl::Time now) {
  if (step_ == 0) return;
  if (in_input_) {
    EndInput(now);
  } else {
    EndComputation(now);
  }
  Add("step", begin_, now);
  step_ = 0;
}

void StepSpans::Add(absl::string_view name, absl::Time begin, absl::Time end) {
  trace_.Add(proto::TracedSpan::PROGRAM, name, begin, end, step_);
}

void StepSpans::EndComputation(absl::Time now) {
  if (now > since_) Add("compute", since_, now);
}

}  // namespace covey::worker
