// SPDX-License-Identifier: Apache-2.0
#include "client/cli/trace/chrome_trace.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "common/base/version.h"

namespace covey::cli {
namespace {

using Json = nlohmann::ordered_json;

// A request that is answered so much later than it was handled was parked.
constexpr int64_t kParkedFromNs = 50'000;

std::string Quoted(absl::string_view text) {
  return Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace);
}

class Writer {
 public:
  Writer(const CollectedTrace& trace, int64_t origin_ns) : origin_(origin_ns) {
    // Arrows are drawn where both ends are there.
    ForEach(trace, [&](NodeId, const CollectedSpan& span) {
      if (span.kind == proto::TracedSpan::SENT) sent_at_.emplace(span.message, span.begin_ns);
    });
    ForEach(trace, [&](NodeId, const CollectedSpan& span) {
      if (span.kind != proto::TracedSpan::RECEIVED || span.message == 0) return;
      const auto from = sent_at_.find(span.message);
      if (from != sent_at_.end() && from->second <= span.begin_ns) arrows_.insert(span.message);
    });
  }

  template <typename Visit>
  static void ForEach(const CollectedTrace& trace, Visit visit) {
    for (const auto& [id, node] : trace.nodes()) {
      for (const auto& [name, thread] : node.threads) {
        for (const CollectedSpan& span : thread.spans) visit(id, span);
      }
    }
  }

  void Name(NodeId node, const std::string& name, int order) {
    Event(absl::StrFormat(R"({"ph":"M","name":"process_name","pid":%d,"tid":0,"args":{"name":%s}})",
                          node.value(), Quoted(name)));
    Event(absl::StrFormat(
        R"({"ph":"M","name":"process_sort_index","pid":%d,"tid":0,"args":{"sort_index":%d}})",
        node.value(), order));
  }
  void NameThread(NodeId node, int thread, const std::string& name) {
    Event(absl::StrFormat(R"({"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":%s}})",
                          node.value(), thread, Quoted(name)));
  }

  void Add(NodeId node, int thread, const std::string& name, const CollectedSpan& span) {
    switch (span.kind) {
      case proto::TracedSpan::PROGRAM:
        Slice(node, thread, name, "program", span, absl::StrFormat(R"("step":%d)", span.step));
        return;
      case proto::TracedSpan::TASK:
        Slice(node, thread, name, "task", span, "");
        return;
      case proto::TracedSpan::OPERATION:
        Asynchronous(node, thread, absl::StrCat("tensor ", name), "tensor", span.begin_ns,
                     span.end_ns, absl::StrFormat(R"("step":%d)", span.step));
        return;
      case proto::TracedSpan::RECEIVED:
        Slice(node, thread, name, "received", span,
              absl::StrFormat(R"("from":%d,"bytes":%d)", span.peer.value(), span.bytes));
        Arrow("f", node, thread, span);
        return;
      case proto::TracedSpan::SENT:
        Slice(node, thread, absl::StrCat("send ", name), "sent", span,
              absl::StrFormat(R"("to":%d,"bytes":%d)", span.peer.value(), span.bytes));
        Arrow("s", node, thread, span);
        return;
      default:
        return;
    }
  }

  void Asynchronous(NodeId node, int thread, const std::string& name, absl::string_view category,
                    int64_t begin_ns, int64_t end_ns, const std::string& arguments) {
    const uint64_t id = next_id_++;
    const std::string head = absl::StrFormat(R"("cat":"%s","name":%s,"id":"%x","pid":%d,"tid":%d)",
                                             category, Quoted(name), id, node.value(), thread);
    Event(absl::StrFormat(R"({"ph":"b",%s,"ts":%s,"args":{%s}})", head, Time(begin_ns), arguments));
    Event(absl::StrFormat(R"({"ph":"e",%s,"ts":%s})", head, Time(std::max(begin_ns, end_ns))));
  }

  void Mark(const TraceMoment& moment) {
    Event(
        absl::StrFormat(R"({"ph":"i","s":"g","cat":"decision","name":%s,"pid":%d,"tid":0,"ts":%s})",
                        Quoted(moment.text), kSchedulerNode.value(), Time(moment.at_ns)));
  }

  std::string Finish(const Json& about) {
    return absl::StrCat(events_, "\n],\"displayTimeUnit\":\"ms\",\"otherData\":",
                        about.dump(-1, ' ', false, Json::error_handler_t::replace), "}\n");
  }

 private:
  void Event(absl::string_view json) {
    absl::StrAppend(&events_, is_first_ ? "{\"traceEvents\":[\n" : ",\n", json);
    is_first_ = false;
  }
  std::string Time(int64_t at_ns) const { return Micros(at_ns - origin_); }
  static std::string Micros(int64_t ns) {
    const char* const sign = ns < 0 ? "-" : "";
    const int64_t most = ns < 0 ? -ns : ns;
    return absl::StrFormat("%s%d.%03d", sign, most / 1000, most % 1000);
  }
  void Slice(NodeId node, int thread, absl::string_view name, absl::string_view category,
             const CollectedSpan& span, absl::string_view arguments) {
    Event(absl::StrFormat(
        R"({"ph":"X","cat":"%s","name":%s,"pid":%d,"tid":%d,"ts":%s,"dur":%s,"args":{%s}})",
        category, Quoted(name), node.value(), thread, Time(span.begin_ns),
        Micros(span.end_ns - span.begin_ns), arguments));
  }
  void Arrow(absl::string_view phase, NodeId node, int thread, const CollectedSpan& span) {
    if (!arrows_.contains(span.message)) return;
    Event(absl::StrFormat(
        R"({"ph":"%s",%s"cat":"message","name":"message","id":"%x","pid":%d,"tid":%d,"ts":%s})",
        phase, phase == "f" ? R"("bp":"e",)" : "", span.message, node.value(), thread,
        Time(span.begin_ns)));
  }

  const int64_t origin_;
  absl::flat_hash_map<uint64_t, int64_t> sent_at_;
  absl::flat_hash_set<uint64_t> arrows_;
  std::string events_;
  bool is_first_ = true;
  uint64_t next_id_ = 1;
};

// The requests that a thread sends or receives, each with its answer.
class Requests {
 public:
  Requests(Writer& writer, NodeId node, int thread)
      : writer_(writer), node_(node), thread_(thread) {}

  void See(absl::string_view name, const CollectedSpan& span) {
    const bool is_request = absl::ConsumeSuffix(&name, "_request");
    const bool is_reply = !is_request && absl::ConsumeSuffix(&name, "_reply");
    if (span.request == 0 || (!is_request && !is_reply)) return;
    const bool sent = span.kind == proto::TracedSpan::SENT;
    auto& open = sent == is_request ? asked_ : to_answer_;
    const Key key(span.request, span.peer, std::string(name));
    if (is_request) {
      open.try_emplace(key, span);  // A repetition belongs to the first.
      return;
    }
    const auto request = open.find(key);
    if (request == open.end()) return;
    const CollectedSpan& begin = request->second;
    const std::string about = absl::StrFormat(R"("peer":%d,"request":%d,"bytes":%d)",
                                              span.peer.value(), span.request, begin.bytes);
    if (!sent) {
      writer_.Asynchronous(node_, thread_, std::string(name), "request", begin.begin_ns,
                           span.begin_ns, about);
    } else if (span.begin_ns - begin.end_ns >= kParkedFromNs) {
      writer_.Asynchronous(node_, thread_, absl::StrCat("parked ", name), "parked", begin.end_ns,
                           span.begin_ns, about);
    }
    open.erase(request);
  }

 private:
  using Key = std::tuple<uint64_t, NodeId, std::string>;

  Writer& writer_;
  const NodeId node_;
  const int thread_;
  std::map<Key, CollectedSpan> asked_;      // of others
  std::map<Key, CollectedSpan> to_answer_;  // by this thread
};

// The scheduler, servers, workers, clients, each by rank.
std::pair<int, std::string> OrderOf(const std::string& name) {
  constexpr absl::string_view kRoles[] = {"scheduler", "server", "worker", "client"};
  for (int i = 0; i < 4; ++i) {
    if (!absl::StartsWith(name, kRoles[i])) continue;
    // Longer numbers are larger.
    return {i, absl::StrCat(absl::StrFormat("%04d", name.size()), name)};
  }
  return {4, name};
}

std::string InMicroseconds(absl::Duration duration) {
  return absl::StrFormat("%.1f µs", absl::ToDoubleMicroseconds(duration));
}

}  // namespace

std::string ChromeTrace(const CollectedTrace& trace, const std::map<NodeId, std::string>& hosts,
                        const std::vector<TraceMoment>& moments, int64_t origin_ns) {
  Writer writer(trace, origin_ns);
  std::vector<std::pair<NodeId, const CollectedNode*>> nodes;
  for (const auto& [id, node] : trace.nodes()) nodes.emplace_back(id, &node);
  std::sort(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) {
    return OrderOf(a.second->name) < OrderOf(b.second->name);
  });

  Json about = {{"program", absl::StrCat("covey ", kVersion)},
                {"messages", trace.messages()},
                {"messages_backward", trace.backward()},
                {"messages_backward_by_at_most", InMicroseconds(trace.backward_by())},
                {"spans_without_room", trace.dropped()}};
  Json& clocks = about["clocks"] = Json::object();
  int order = 0;
  for (const auto& [id, node] : nodes) {
    const auto host = hosts.find(id);
    writer.Name(id,
                host == hosts.end() || host->second.empty()
                    ? node->name
                    : absl::StrCat(node->name, " on ", host->second),
                order++);
    clocks[node->name] = {
        {"error_at_most",
         node->clock_error == absl::ZeroDuration() ? "unknown" : InMicroseconds(node->clock_error)},
        {"shifted_by", InMicroseconds(node->shift)},
        {"drift", absl::StrFormat("%.2f ppm", node->drift * 1e6)},
        {"complete", node->is_complete}};
    int number = 0;
    for (const auto& [name, thread] : node->threads) {
      writer.NameThread(id, ++number, name);
      std::vector<const CollectedSpan*> spans;
      for (const CollectedSpan& span : thread.spans) spans.push_back(&span);
      // Enclosing slices first.
      std::stable_sort(spans.begin(), spans.end(), [](const auto* a, const auto* b) {
        return std::pair(a->begin_ns, -a->end_ns) < std::pair(b->begin_ns, -b->end_ns);
      });
      Requests requests(writer, id, number);
      for (const CollectedSpan* span : spans) {
        writer.Add(id, number, thread.names[span->name], *span);
        requests.See(thread.names[span->name], *span);
      }
    }
  }
  // Its own spans may be missing, as those of any node.
  if (!moments.empty() && !trace.nodes().contains(kSchedulerNode)) {
    writer.Name(kSchedulerNode, "scheduler", order);
  }
  for (const TraceMoment& moment : moments) writer.Mark(moment);
  return writer.Finish(about);
}

namespace {

// The events of a file; nothing when it is not in the format.
std::optional<nlohmann::json> EventsOf(const std::string& text) {
  nlohmann::json all = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (all.is_discarded()) {
    // The array format may lack its end.
    absl::string_view cut = absl::StripTrailingAsciiWhitespace(text);
    absl::ConsumeSuffix(&cut, ",");
    all = nlohmann::json::parse(absl::StrCat(cut, "]"), nullptr, /*allow_exceptions=*/false);
  }
  if (all.is_object() && all.contains("traceEvents")) {
    nlohmann::json events = std::move(all["traceEvents"]);
    all = std::move(events);
  }
  if (!all.is_array()) return std::nullopt;
  return all;
}

// Whether it has the field, a string or a number.
bool HasText(const nlohmann::json& event, const char* field) {
  return event.contains(field) && event[field].is_primitive();
}

class Checker {
 public:
  void See(const nlohmann::json& event, size_t number) {
    number_ = number;
    if (!event.is_object() || !event.contains("ph") || !event["ph"].is_string()) {
      return Problem("has no phase (\"ph\")");
    }
    const std::string phase = event["ph"];
    for (const char* field : {"name", "pid", "tid"}) {
      if (!event.contains(field)) return Problem(absl::StrCat("has no \"", field, "\""));
    }
    if (!event["name"].is_string() || !event["pid"].is_number_integer() ||
        !event["tid"].is_number_integer()) {
      return Problem("has a name, pid or tid of the wrong type");
    }
    const auto process = event["pid"].get<int64_t>();
    const std::pair<int64_t, int64_t> thread(process, event["tid"].get<int64_t>());
    if (phase == "M") {
      if (event["name"] == "process_name") named_processes_.insert(process);
      if (event["name"] == "thread_name") named_threads_.insert(thread);
      return;
    }
    processes_.insert(process);
    if (!event.contains("ts") || !event["ts"].is_number()) return Problem("has no time (\"ts\")");
    const double at = event["ts"];
    if (phase == "X") {
      if (!event.contains("dur") || !event["dur"].is_number() || event["dur"] < 0) {
        return Problem("is a slice without a duration (\"dur\")");
      }
      threads_.insert(thread);
      slices_[thread].push_back({at, at + event["dur"].get<double>()});
    } else if (phase == "b" || phase == "e") {
      if (!HasText(event, "id") || !HasText(event, "cat")) {
        return Problem("is asynchronous, and has no \"id\" and \"cat\"");
      }
      const std::string key =
          absl::StrCat(process, " ", event["cat"].dump(), " ", event["id"].dump());
      int& open = open_[key];
      open += phase == "b" ? 1 : -1;
      if (open < 0) Problem("ends an asynchronous slice that has not begun");
    } else if (phase == "s" || phase == "f") {
      if (!HasText(event, "id")) return Problem("is an arrow without an \"id\"");
      arrows_[event["id"].dump()][phase == "s" ? 0 : 1].push_back(at);
    } else if (phase != "i" && phase != "C" && phase != "t") {
      Problem(absl::StrCat("has the unknown phase \"", phase, "\""));
    }
  }

  TraceCheck Finish(uint64_t events) {
    number_.reset();
    for (auto& [thread, slices] : slices_) {
      std::sort(slices.begin(), slices.end(), [](const auto& a, const auto& b) {
        return std::pair(a.first, -a.second) < std::pair(b.first, -b.second);
      });
      // Times are multiples of a nanosecond, in microseconds.
      constexpr double kRounding = 0.0011;
      std::vector<double> ends;
      for (const auto& [begin, end] : slices) {
        while (!ends.empty() && ends.back() <= begin + kRounding) ends.pop_back();
        if (!ends.empty() && end > ends.back() + kRounding) {
          Problem(
              absl::StrFormat("process %d, thread %d: the slice from %.3f to %.3f overlaps one "
                              "that ends at %.3f, and does not nest",
                              thread.first, thread.second, begin, end, ends.back()));
        }
        ends.push_back(end);
      }
    }
    for (const auto& [key, open] : open_) {
      if (open > 0) Problem(absl::StrCat("the asynchronous slice ", key, " does not end"));
    }
    for (const auto& [id, ends] : arrows_) {
      if (ends[0].empty()) {
        Problem(absl::StrCat("the arrow ", id, " ends without a beginning"));
      } else if (ends[1].empty()) {
        Problem(absl::StrCat("the arrow ", id, " begins without an end"));
      } else if (ends[1].front() < ends[0].front()) {
        Problem(absl::StrCat("the arrow ", id, " ends before it begins"));
      }
    }
    for (const int64_t process : processes_) {
      if (!named_processes_.contains(process)) {
        Problem(absl::StrCat("process ", process, " has no name"));
      }
    }
    for (const auto& thread : threads_) {
      if (!named_threads_.contains(thread)) {
        Problem(
            absl::StrCat("thread ", thread.second, " of process ", thread.first, " has no name"));
      }
    }
    return {.events = events, .problems = std::move(problems_)};
  }

 private:
  void Problem(absl::string_view what) {
    if (problems_.size() >= kProblemsMax) return;
    problems_.push_back(number_.has_value() ? absl::StrCat("event ", *number_ + 1, " ", what)
                                            : std::string(what));
  }

  std::optional<size_t> number_;
  std::vector<std::string> problems_;
  std::set<int64_t> processes_;
  std::set<int64_t> named_processes_;
  std::set<std::pair<int64_t, int64_t>> threads_;
  std::set<std::pair<int64_t, int64_t>> named_threads_;
  std::map<std::pair<int64_t, int64_t>, std::vector<std::pair<double, double>>> slices_;
  std::map<std::string, int> open_;
  // Where it begins, and where it ends.
  std::map<std::string, std::array<std::vector<double>, 2>> arrows_;
};

}  // namespace

TraceCheck CheckChromeTrace(const std::string& text) {
  const std::optional<nlohmann::json> events = EventsOf(text);
  if (!events) return {.problems = {"it is no JSON in the trace event format"}};
  Checker checker;
  for (size_t i = 0; i < events->size(); ++i) checker.See((*events)[i], i);
  return checker.Finish(events->size());
}

}  // namespace covey::cli
