// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "client/cli/console/text_file.h"
#include "client/cli/process/child_process.h"
#include "client/cli/process/line_splitter.h"

namespace covey::cli {

// The output of one child, as lines: writes them to its log, remembers the last ones in case it
// fails, and passes them on. Confined to one thread; the child outlives it.
class ChildOutput {
 public:
  using Stream = ChildProcess::Stream;
  using Take = std::function<void(Stream stream, absl::string_view line)>;
  static constexpr size_t kLastLinesMax = 5;

  // `log` may be null.
  ChildOutput(ChildProcess& child, std::unique_ptr<LogFile> log, Take take)
      : child_(child), log_(std::move(log)), take_(std::move(take)) {}

  // Reads the available output; does not block.
  void Read(Stream stream);
  // Call it when the child has ended: reads the rest.
  void Finish();

  const std::deque<std::string>& last_lines() const { return last_lines_; }

 private:
  LineSplitter::Take TakeFrom(Stream stream);

  ChildProcess& child_;
  const std::unique_ptr<LogFile> log_;
  const Take take_;
  LineSplitter splitters_[2];
  std::deque<std::string> last_lines_;
};

}  // namespace covey::cli
