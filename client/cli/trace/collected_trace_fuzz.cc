// SPDX-License-Identifier: Apache-2.0
// Traces as nodes report them: TracePiece messages, each a part. All the way to the text of the
// trace.
#include "client/cli/trace/collected_trace.h"

#include <string>

#include "client/cli/trace/chrome_trace.h"
#include "common/base/check.h"
#include "common/fuzz/fuzz_input.h"
#include "common/fuzz/fuzz_target.h"

namespace covey {
namespace {

constexpr int64_t kSecond = 1'000'000'000;

proto::TracePiece PieceOf(uint64_t node, proto::TracedSpan::Kind kind, int64_t begin_ns) {
  proto::TracePiece piece;
  piece.set_node(node);
  piece.set_name("worker-0");
  piece.set_is_last(true);
  piece.mutable_clock()->set_at_ns(kSecond);
  piece.mutable_clock()->set_offset_ns(-500);
  piece.mutable_clock()->set_drift(1e-6);
  piece.mutable_clock()->set_error_ns(900);
  proto::TracedThread& thread = *piece.add_threads();
  thread.set_name("loop");
  thread.add_names("push_request");
  proto::TracedSpan& span = *thread.add_spans();
  span.set_kind(kind);
  span.set_begin_ns(begin_ns);
  span.set_duration_ns(1000);
  span.set_message(77);
  span.set_peer(5);
  span.set_bytes(4096);
  return piece;
}

}  // namespace

std::vector<std::string> FuzzSeeds() {
  const std::string sent = PieceOf(5, proto::TracedSpan::SENT, kSecond).SerializeAsString();
  const std::string received =
      PieceOf(6, proto::TracedSpan::RECEIVED, kSecond - 200).SerializeAsString();
  return {JoinFuzzParts({sent}), JoinFuzzParts({sent, received})};
}

bool FuzzOne(std::span<const uint8_t> input) {
  cli::CollectedTrace trace;
  bool any = false;
  for (const Buffer& part : FuzzFrames(input, 8)) {
    proto::TracePiece piece;
    if (!piece.ParseFromArray(part.data(), static_cast<int>(part.size()))) continue;
    trace.Add(piece);
    any = true;
  }
  trace.Align();
  COVEY_CHECK(trace.backward() <= trace.messages());
  COVEY_CHECK(!cli::ChromeTrace(trace, {}, {}, 0).empty());
  return any;
}

}  // namespace covey
