// SPDX-License-Identifier: Apache-2.0
#include "client/cli/trace/trace_command.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/cli/console/command.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_file.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "client/cli/trace/chrome_trace.h"
#include "client/cli/trace/collected_trace.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(250);
// Nodes hear of a trace, and tell their steps, with their heartbeats.
constexpr absl::Duration kHeard = absl::Milliseconds(2500);
constexpr absl::Duration kReportMax = absl::Seconds(40);

struct Asked {
  absl::Duration duration = absl::Seconds(5);
  uint64_t steps = 0;
  bool check = false;
  std::string path = "trace.json";
};

struct Outcome {
  CollectedTrace trace;
  std::vector<std::string> missing;
  uint64_t refused = 0;
  absl::Duration took;
};

std::map<NodeId, uint64_t> StepsOf(const proto::StatusReply& status) {
  std::map<NodeId, uint64_t> steps;
  for (int i = 0; i < status.nodes_size(); ++i) {
    const proto::Node& node = status.view().nodes(i);
    if (node.role() == proto::WORKER && node.state() == proto::Node::ALIVE) {
      steps[NodeId(node.id())] = status.nodes(i).progress().step();
    }
  }
  return steps;
}

// How many steps the slowest worker has taken since `before`; workers that came or went are left
// out.
uint64_t StepsSince(const std::map<NodeId, uint64_t>& before,
                    const std::map<NodeId, uint64_t>& now) {
  std::optional<uint64_t> fewest;
  for (const auto& [node, step] : now) {
    const auto was = before.find(node);
    if (was == before.end()) continue;
    const uint64_t taken = step - std::min(step, was->second);
    fewest = std::min(fewest.value_or(taken), taken);
  }
  return fewest.value_or(0);
}

std::string Names(const proto::ClusterView& view, const proto::TraceReply& reply) {
  std::vector<std::string> names;
  for (const uint64_t id : reply.missing()) {
    const auto node = std::find_if(view.nodes().begin(), view.nodes().end(),
                                   [id](const proto::Node& each) { return each.id() == id; });
    names.push_back(node == view.nodes().end() ? absl::StrCat("node ", id) : node->name());
  }
  return absl::StrJoin(names, ", ");
}

void Say(const std::string& line) { WriteAll(STDERR_FILENO, absl::StrCat(line, "\n")); }

// Waits until the trace has what was asked for. A signal ends it sooner, and what there is by then
// is written.
absl::Status Await(SchedulerStub& scheduler, const Asked& asked, absl::Time start) {
  std::optional<std::map<NodeId, uint64_t>> before;
  int64_t told = 0;
  while (MonotonicNow() - start < asked.duration) {
    if (WaitForTermination(kPoll).has_value()) return absl::OkStatus();
    const absl::Duration passed = MonotonicNow() - start;
    std::string progress;
    if (asked.steps > 0 && passed >= kHeard) {
      COVEY_ASSIGN_OR_RETURN(const proto::StatusReply status, scheduler.GetStatus());
      const std::map<NodeId, uint64_t> steps = StepsOf(status);
      if (!before) before = steps;
      const uint64_t taken = StepsSince(*before, steps);
      if (taken >= asked.steps) return absl::OkStatus();
      progress = absl::StrCat(", ", taken, " of ", asked.steps, " steps");
    }
    if (const int64_t second = absl::ToInt64Seconds(passed); second > told) {
      told = second;
      Say(absl::StrCat("tracing for ", second, " s", progress, "; at most ",
                       absl::FormatDuration(asked.duration)));
    }
  }
  return absl::OkStatus();
}

absl::Status Collect(SchedulerStub& scheduler, const proto::ClusterView& view, uint64_t trace,
                     Outcome& outcome) {
  const absl::Time until = MonotonicNow() + kReportMax;
  proto::TraceRequest request;
  request.set_trace(trace);
  request.set_end(true);
  std::string last;
  for (;;) {
    COVEY_ASSIGN_OR_RETURN(const proto::TraceReply reply, scheduler.GetTrace(request));
    for (const proto::TracePiece& piece : reply.pieces()) outcome.trace.Add(piece);
    request.set_pieces_known(request.pieces_known() + static_cast<uint64_t>(reply.pieces_size()));
    outcome.refused = reply.refused();
    if (reply.has_more()) continue;
    if (reply.missing().empty()) return absl::OkStatus();
    const std::string missing = Names(view, reply);
    if (MonotonicNow() > until || WaitForTermination(kPoll).has_value()) {
      outcome.missing.push_back(missing);
      return absl::OkStatus();
    }
    if (missing != last) Say(absl::StrCat("waiting for the reports of ", missing));
    last = missing;
  }
}

absl::StatusOr<Outcome> Run(SchedulerStub& scheduler, const Asked& asked) {
  COVEY_RETURN_IF_ERROR(CheckWritable(asked.path));
  COVEY_ASSIGN_OR_RETURN(const proto::StatusReply before, scheduler.GetStatus());
  proto::StartTraceRequest request;
  request.set_duration_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(asked.duration)));
  COVEY_ASSIGN_OR_RETURN(const proto::StartTraceReply started, scheduler.StartTrace(request));
  const absl::Time start = MonotonicNow();
  const uint64_t trace = started.order().trace();
  const absl::Status waited = Await(scheduler, asked, start);
  Outcome outcome;
  outcome.took = MonotonicNow() - start;
  COVEY_RETURN_IF_ERROR(waited);
  COVEY_RETURN_IF_ERROR(Collect(scheduler, before.view(), trace, outcome));
  COVEY_ASSIGN_OR_RETURN(const proto::StatusReply after, scheduler.GetStatus());

  outcome.trace.Align();
  std::map<NodeId, std::string> hosts;
  for (const proto::Node& node : after.view().nodes()) hosts[NodeId(node.id())] = node.host();
  // The identity of a trace is its beginning, and its request came right after the first status.
  const auto origin = static_cast<int64_t>(trace);
  std::vector<TraceMoment> moments;
  for (const proto::Event& event : after.events()) {
    if (event.at_ms() < before.uptime_ms()) continue;
    const auto since = static_cast<int64_t>(event.at_ms() - before.uptime_ms());
    if (absl::Milliseconds(since) > outcome.took) continue;
    moments.push_back({.at_ns = origin + since * 1'000'000, .text = event.text()});
  }
  COVEY_RETURN_IF_ERROR(
      WriteTextFile(asked.path, ChromeTrace(outcome.trace, hosts, moments, origin)));
  return outcome;
}

std::string ShowDuration(absl::Duration duration) {
  return absl::StrCat(ShowNumber(absl::ToDoubleMilliseconds(duration)), " ms");
}

// The node whose clock is known the least, and nodes of which it is not known at all.
std::string ShowClocks(const CollectedTrace& trace) {
  std::vector<std::string> unknown;
  const CollectedNode* worst = nullptr;
  for (const auto& [id, node] : trace.nodes()) {
    if (node.clock_error == absl::ZeroDuration()) {
      unknown.push_back(node.name);
    } else if (worst == nullptr || node.clock_error > worst->clock_error) {
      worst = &node;
    }
  }
  std::string text;
  if (worst != nullptr) {
    text = absl::StrCat("clocks agree within ", ShowDuration(worst->clock_error), " (", worst->name,
                        ")");
  }
  if (!unknown.empty()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "the clocks of ", absl::StrJoin(unknown, ", "),
                    " were not compared: their spans may be anywhere");
  }
  return text;
}

std::string Text(const Asked& asked, const Outcome& outcome) {
  const CollectedTrace& trace = outcome.trace;
  std::string text = absl::StrCat(
      asked.path, ": ", ShowCount(trace.spans()), " spans of ", trace.nodes().size(), " nodes in ",
      ShowSeconds(absl::ToDoubleSeconds(outcome.took)), ", ", ShowCount(trace.messages()),
      " messages with both ends\n", ShowClocks(trace), "\n");
  if (trace.backward() > 0) {
    absl::StrAppend(&text, ShowCount(trace.backward()),
                    " messages arrive before they were sent, by at most ",
                    ShowDuration(trace.backward_by()), ": a link is slower in one direction\n");
  }
  if (trace.dropped() + outcome.refused > 0) {
    absl::StrAppend(&text, "there was no room for ", ShowCount(trace.dropped()), " spans",
                    outcome.refused > 0 ? " and for the reports of some nodes" : "",
                    "; trace for a shorter time to have all\n");
  }
  if (!outcome.missing.empty()) {
    absl::StrAppend(&text, "not reported in time: ", absl::StrJoin(outcome.missing, ", "), "\n");
  }
  return absl::StrCat(text, "open it at https://ui.perfetto.dev or in chrome://tracing\n");
}

nlohmann::ordered_json Figures(const Asked& asked, const Outcome& outcome) {
  const CollectedTrace& trace = outcome.trace;
  nlohmann::ordered_json clocks = nlohmann::ordered_json::object();
  for (const auto& [id, node] : trace.nodes()) {
    clocks[node.name] = {{"error_seconds", absl::ToDoubleSeconds(node.clock_error)},
                         {"shift_seconds", absl::ToDoubleSeconds(node.shift)},
                         {"drift", node.drift}};
  }
  return {{"file", asked.path},
          {"seconds", absl::ToDoubleSeconds(outcome.took)},
          {"nodes", trace.nodes().size()},
          {"spans", trace.spans()},
          {"spans_without_room", trace.dropped()},
          {"messages", trace.messages()},
          {"messages_backward", trace.backward()},
          {"backward_seconds", absl::ToDoubleSeconds(trace.backward_by())},
          {"missing", outcome.missing},
          {"clocks", clocks}};
}

int Check(absl::string_view command, const std::string& path) {
  const absl::StatusOr<std::string> text = ReadTextFile(path);
  if (!text.ok()) {
    PrintFailure(command, text.status());
    return kExitFailed;
  }
  const TraceCheck check = CheckChromeTrace(*text);
  for (const std::string& problem : check.problems) {
    WriteAll(STDOUT_FILENO, absl::StrCat(path, ": ", problem, "\n"));
  }
  if (!check.problems.empty()) return kExitFailed;
  WriteAll(STDOUT_FILENO,
           absl::StrCat(path, ": ", ShowCount(check.events), " events, all right\n"));
  return kExitOk;
}

}  // namespace

int TraceCommand(int count, const char* const* arguments) {
  SchedulerOptions scheduler;
  Asked asked;
  std::vector<std::string> words;
  ConfigFile options(
      "covey trace",
      "Records what all nodes of a cluster do for some seconds, and writes it to one file on one "
      "time line, for ui.perfetto.dev: computation and waits of workers, each message between "
      "nodes with its sending and handling, requests, parked requests, and the scheduler's "
      "decisions. Recording costs a few percent while it lasts, and nothing otherwise. Ctrl-C ends "
      "it sooner. Exit code: 0 ok, 1 refused, failed, or incomplete, 3 no scheduler answers.");
  scheduler.AddTo(options);
  options.Add("duration", &asked.duration, "how long to record, at most 10m");
  options.Add("steps", &asked.steps,
              "end as soon as every worker has taken so many steps; --duration is then the most");
  options.Add(
      "check", &asked.check,
      "record nothing; say what is wrong with FILE, if anything, in the trace event format");
  options.TakeRest(&words, "FILE   where the trace is written; trace.json unless given");
  if (const auto code = LoadWithShortOutput(options, count, arguments)) return *code;
  absl::Status usage;
  if (words.size() > 1) {
    usage =
        absl::InvalidArgumentError("name one file, as in: covey trace --duration 5s trace.json");
  } else if (asked.duration < absl::Milliseconds(1) || asked.duration > kTraceMax) {
    usage = absl::InvalidArgumentError(absl::StrCat(
        "--duration is ", absl::FormatDuration(asked.duration), "; choose from 1ms to 10m"));
  } else if (!asked.check) {
    usage = scheduler.Check();
  }
  if (!usage.ok()) {
    PrintFailure(arguments[0], usage);
    return kExitUsage;
  }
  if (!words.empty()) asked.path = words[0];
  if (asked.check) return Check(arguments[0], asked.path);

  SchedulerStub stub(scheduler.target());
  const absl::StatusOr<Outcome> outcome = Run(stub, asked);
  if (!outcome.ok()) {
    PrintFailure(arguments[0], outcome.status());
    return ExitCodeOf(outcome.status());
  }
  WriteAll(STDOUT_FILENO, scheduler.json ? absl::StrCat(Figures(asked, *outcome).dump(2), "\n")
                                         : Text(asked, *outcome));
  return outcome->missing.empty() ? kExitOk : kExitFailed;
}

}  // namespace covey::cli
