// SPDX-License-Identifier: Apache-2.0
#include "client/cli/trace/collected_trace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"

namespace covey::cli {
namespace {

// Enough for errors to have passed along any chain of nodes that exchange messages.
constexpr int kAlignmentRounds = 64;

// Nine years, of a clock that begins when its machine does: sums of a few such times are numbers.
constexpr int64_t kFarthestNs = int64_t{1} << 58;
constexpr double kDriftMax = 0.5;

bool IsNear(int64_t ns) { return -kFarthestNs <= ns && ns <= kFarthestNs; }

// Whether a working node can say this.
bool IsClock(const proto::ClockRelation& clock) {
  return IsNear(clock.at_ns()) && IsNear(clock.offset_ns()) && IsNear(clock.error_ns()) &&
         clock.error_ns() >= 0 && std::abs(clock.drift()) <= kDriftMax;
}
bool IsSpan(const proto::TracedSpan& span, size_t names) {
  return span.name() < names && IsNear(span.begin_ns()) &&
         span.duration_ns() <= static_cast<uint64_t>(kFarthestNs);
}

bool IsMessage(const CollectedSpan& span) {
  return span.message != 0 &&
         (span.kind == proto::TracedSpan::SENT || span.kind == proto::TracedSpan::RECEIVED);
}

template <typename Visit>
void ForEachSpan(std::map<NodeId, CollectedNode>& nodes, Visit visit) {
  for (auto& [id, node] : nodes) {
    for (auto& [name, thread] : node.threads) {
      for (CollectedSpan& span : thread.spans) visit(id, span);
    }
  }
}

}  // namespace

void CollectedTrace::Add(const proto::TracePiece& piece) {
  const NodeId id(piece.node());
  CollectedNode& node = nodes_[id];
  node.name = piece.name();
  node.is_complete = piece.is_last();
  ClockLine& clock = clocks_[id];
  if (piece.has_clock() && IsClock(piece.clock())) {
    clock = {.at = absl::FromUnixNanos(piece.clock().at_ns()),
             .offset = absl::Nanoseconds(piece.clock().offset_ns()),
             .drift = piece.clock().drift(),
             .error = absl::Nanoseconds(piece.clock().error_ns())};
    node.clock_error = clock.error;
    node.drift = clock.drift;
  }
  const auto on_scheduler = [&clock](int64_t t) {
    return absl::ToUnixNanos(clock.Map(absl::FromUnixNanos(t)));
  };
  for (const proto::TracedThread& reported : piece.threads()) {
    CollectedThread& thread = node.threads[reported.name()];
    // Each piece of a thread has all of its names so far, and spans of earlier pieces have some.
    if (static_cast<size_t>(reported.names_size()) > thread.names.size()) {
      thread.names.assign(reported.names().begin(), reported.names().end());
    }
    thread.dropped += reported.dropped();
    for (const proto::TracedSpan& span : reported.spans()) {
      if (!IsSpan(span, thread.names.size())) continue;
      const auto duration = static_cast<int64_t>(span.duration_ns());
      thread.spans.push_back({.kind = span.kind(),
                              .name = span.name(),
                              .begin_ns = on_scheduler(span.begin_ns()),
                              .end_ns = on_scheduler(span.begin_ns() + duration),
                              .message = span.message(),
                              .peer = NodeId(span.peer()),
                              .bytes = span.bytes(),
                              .request = span.request(),
                              .step = span.step()});
    }
  }
}

void CollectedTrace::Align() {
  struct Sent {
    NodeId node;
    int64_t at = 0;
  };
  absl::flat_hash_map<uint64_t, Sent> sent;
  ForEachSpan(nodes_, [&](NodeId id, const CollectedSpan& span) {
    if (IsMessage(span) && span.kind == proto::TracedSpan::SENT) {
      sent[span.message] = {.node = id, .at = span.begin_ns};
    }
  });
  // From sender to receiver: the shortest time that a message takes, by the two clocks.
  std::map<std::pair<NodeId, NodeId>, int64_t> shortest;
  ForEachSpan(nodes_, [&](NodeId id, const CollectedSpan& span) {
    if (!IsMessage(span) || span.kind != proto::TracedSpan::RECEIVED) return;
    const auto from = sent.find(span.message);
    if (from == sent.end() || from->second.node == id) return;
    ++messages_;
    const int64_t took = span.begin_ns - from->second.at;
    const auto [entry, is_new] = shortest.emplace(std::pair(from->second.node, id), took);
    if (!is_new) entry->second = std::min(entry->second, took);
  });

  std::map<NodeId, int64_t> shifts;
  for (int round = 0; round < kAlignmentRounds; ++round) {
    bool moved = false;
    for (const auto& [pair, took] : shortest) {
      const auto [from, to] = pair;
      const int64_t missing = shifts[from] - shifts[to] - took;
      if (missing <= 0) continue;
      const auto move = [&](NodeId node, int64_t by) {
        const int64_t most = absl::ToInt64Nanoseconds(nodes_[node].clock_error);
        const int64_t to_be = std::clamp(shifts[node] + by, -most, most);
        moved = moved || to_be != shifts[node];
        shifts[node] = to_be;
      };
      move(to, (missing + 1) / 2);
      move(from, -(missing + 1) / 2);
    }
    if (!moved) break;
  }
  for (const auto& [id, shift] : shifts) nodes_[id].shift = absl::Nanoseconds(shift);
  ForEachSpan(nodes_, [&](NodeId id, CollectedSpan& span) {
    span.begin_ns += shifts[id];
    span.end_ns += shifts[id];
  });

  ForEachSpan(nodes_, [&](NodeId id, const CollectedSpan& span) {
    if (!IsMessage(span) || span.kind != proto::TracedSpan::RECEIVED) return;
    const auto from = sent.find(span.message);
    if (from == sent.end() || from->second.node == id) return;
    const int64_t early = from->second.at + shifts[from->second.node] - span.begin_ns;
    if (early <= 0) return;
    ++backward_;
    backward_by_ = std::max(backward_by_, absl::Nanoseconds(early));
  });
}

uint64_t CollectedTrace::spans() const {
  uint64_t spans = 0;
  for (const auto& [id, node] : nodes_) {
    for (const auto& [name, thread] : node.threads) spans += thread.spans.size();
  }
  return spans;
}

uint64_t CollectedTrace::dropped() const {
  uint64_t dropped = 0;
  for (const auto& [id, node] : nodes_) {
    for (const auto& [name, thread] : node.threads) dropped += thread.dropped;
  }
  return dropped;
}

}  // namespace covey::cli
