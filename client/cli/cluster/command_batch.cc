// SPDX-License-Identifier: Apache-2.0
#include "client/cli/cluster/command_batch.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

using Stream = ChildProcess::Stream;

// How often ends, deadlines and signals are looked for; output wakes at once.
constexpr int kLookMs = 50;
// Covers a full pipe; bounded, because a process that escaped may write forever.
constexpr int kLastReadsMax = 16;

// A command that runs.
struct Running {
  size_t index = 0;
  absl::Time until;
  std::unique_ptr<ChildProcess> child;
};

void ReadOnce(ChildProcess& child, BatchOutcome& outcome) {
  for (const Stream stream : {Stream::kOutput, Stream::kError}) {
    std::string& taken = stream == Stream::kOutput ? outcome.output : outcome.error;
    taken += child.Read(stream);
    taken.resize(std::min(taken.size(), kBatchOutputBytesMax));
  }
}

// Whether it has ended; then the outcome is complete.
bool Finish(Running& running, BatchOutcome& outcome) {
  ReadOnce(*running.child, outcome);
  const bool is_late = MonotonicNow() > running.until;
  if (is_late) running.child->Signal(SIGKILL);
  const std::optional<ChildExit> exit = running.child->Reap();
  if (!exit.has_value()) return false;
  for (int reads = 0; reads < kLastReadsMax; ++reads) ReadOnce(*running.child, outcome);
  outcome.exit = *exit;
  if (is_late) outcome.status = absl::DeadlineExceededError("no answer in time");
  return true;
}

void Await(const std::vector<Running>& running) {
  std::vector<pollfd> polled;
  for (const Running& each : running) {
    for (const Stream stream : {Stream::kOutput, Stream::kError}) {
      polled.push_back({.fd = each.child->descriptor(stream), .events = POLLIN, .revents = 0});
    }
  }
  poll(polled.data(), polled.size(), kLookMs);
}

}  // namespace

absl::StatusOr<std::vector<BatchOutcome>> RunBatch(const std::vector<BatchCommand>& commands,
                                                   uint32_t at_once) {
  std::vector<BatchOutcome> outcomes(commands.size());
  std::vector<Running> running;
  size_t next = 0;
  while (next < commands.size() || !running.empty()) {
    while (next < commands.size() && running.size() < at_once) {
      auto child = ChildProcess::Start(commands[next].program);
      outcomes[next].status = child.status();
      if (child.ok()) {
        running.push_back({.index = next,
                           .until = MonotonicNow() + commands[next].deadline,
                           .child = *std::move(child)});
      }
      ++next;
    }
    Await(running);
    std::erase_if(running, [&](Running& each) { return Finish(each, outcomes[each.index]); });
    if (WaitForTermination(absl::ZeroDuration()).has_value()) {
      return absl::CancelledError("interrupted");
    }
  }
  return outcomes;
}

}  // namespace covey::cli
