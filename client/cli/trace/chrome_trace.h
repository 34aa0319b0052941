// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "client/cli/trace/collected_trace.h"
#include "common/cluster/ids.h"

namespace covey::cli {

// A decision of the scheduler, or another moment that concerns all.
struct TraceMoment {
  int64_t at_ns = 0;  // by the scheduler's clock
  std::string text;
};

// The trace in Chrome's trace event format (JSON object format), which ui.perfetto.dev and
// chrome://tracing open. Times are microseconds since `origin_ns` of the scheduler's clock.
//
//   a node                  a process, with its name and host
//   a thread                a thread; its spans are slices
//   a message               an arrow from the slice that sent it to the one that handled it, where
//                           both are there
//   a request               an asynchronous slice at its sender, until the answer: "push"
//   a parked request        an asynchronous slice at the server, when it was answered later than it
//                           was handled: a gate, a full queue, a chain
//   a tensor of a step      an asynchronous slice at the worker, from submission to new values
//   a decision              a mark over all processes
//
// `hosts`: node id to host name. Valid UTF-8. Pure.
std::string ChromeTrace(const CollectedTrace& trace, const std::map<NodeId, std::string>& hosts,
                        const std::vector<TraceMoment>& moments, int64_t origin_ns);

// Checks a file in this format. A problem is a field that an event lacks, two slices of a thread
// that overlap and do not nest, an asynchronous slice without end, an arrow without beginning or
// backwards in time, a process or thread without a name. The result has the first kProblemsMax of
// them; a file in order has none. The array format, with or without its closing bracket, is
// accepted, too. Pure.
inline constexpr size_t kProblemsMax = 20;
struct TraceCheck {
  uint64_t events = 0;
  std::vector<std::string> problems;
};
TraceCheck CheckChromeTrace(const std::string& text);

}  // namespace covey::cli
