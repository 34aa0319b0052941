// SPDX-License-Identifier: Apache-2.0
#include "client/cli/process/child_output.h"

#include "absl/strings/strip.h"

namespace covey::cli {
namespace {

// Covers the largest pipe; bounded, because a process that escaped may write forever.
constexpr int kLastReadsMax = 16;

}  // namespace

void ChildOutput::Read(Stream stream) {
  splitters_[static_cast<size_t>(stream)].Add(child_.Read(stream), TakeFrom(stream));
}

void ChildOutput::Finish() {
  for (const Stream stream : {Stream::kOutput, Stream::kError}) {
    for (int reads = 0; reads < kLastReadsMax; ++reads) Read(stream);
    splitters_[static_cast<size_t>(stream)].Finish(TakeFrom(stream));
  }
  child_.CloseStreams();
}

LineSplitter::Take ChildOutput::TakeFrom(Stream stream) {
  return [this, stream](absl::string_view line) {
    line = absl::StripSuffix(line, "\r");
    if (log_ != nullptr) log_->Append(line);
    last_lines_.emplace_back(line);
    if (last_lines_.size() > kLastLinesMax) last_lines_.pop_front();
    take_(stream, line);
  };
}

}  // namespace covey::cli
