// SPDX-License-Identifier: Apache-2.0
#include "client/engine/requests/shard_reply.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/engine/requests/active_operations.h"
#include "client/engine/requests/request_errors.h"
#include "client/engine/requests/scan_reply.h"
#include "common/base/buffer.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/net/frame_checksum.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format_proto.h"
#include "common/vectors/vector_proto.h"

namespace covey::client {
namespace {

// Values of this size do not stay in the caches until the last of them has arrived.
constexpr size_t kPastCachesBytes = 32 << 20;

// The format of the reply's values: the one that the request asks for, or float32, which a server
// sends that does not know that format. Rows have the type of the table.
WireFormat ValueFormatOf(const ShardRequest& request, const Message& reply) {
  if (request.owner->operation.keyed) return request.owner->row_type;
  const proto::WireFormat said = reply.envelope.has_push_reply()
                                     ? reply.envelope.push_reply().value_format()
                                     : reply.envelope.pull_reply().value_format();
  const WireFormat asked = request.owner->operation.value_format;
  return said == ToProto(asked) ? asked : WireFormat::kFloat32;
}

size_t ValueBytes(const ShardRequest& request, const Message& reply) {
  return EncodedBytes(ValueFormatOf(request, reply), request.element_count);
}

// OK, or why the values are unusable and must be requested again.
absl::Status CheckVersion(const ShardRequest& request, const Message& reply,
                          const ClusterView& view, Counters& counters) {
  const proto::ShardState& state = StateOf(reply);
  const bool other_generation = state.generation() != 0 && state.generation() != request.generation;
  if (!other_generation && Version(state.version()) >= request.version_floor) {
    return absl::OkStatus();
  }
  ++counters.outdated_answers;
  return absl::UnavailableError(
      absl::StrCat(view.NameOf(request.head.node), " answered with version ", state.version(),
                   " of generation ", state.generation(), "; this client knows of version ",
                   request.version_floor.value(), " of generation ", request.generation));
}

absl::Status TakeRows(const ShardRequest& request, const Message& reply) {
  COVEY_RETURN_IF_ERROR(CheckFrameChecksums(reply));
  if (reply.frames.empty()) return absl::OkStatus();
  const std::span<float> rows = request.owner->operation.values;
  const KeyBatch& batch = *request.owner->operation.keyed->batch;
  const size_t width = rows.size() / batch.size();
  if (request.owner->row_type == WireFormat::kFloat32) {
    batch.SpreadRows(request.shard.index.value(), width, reply.frames[0].As<float>(), rows);
    return absl::OkStatus();
  }
  std::vector<float> decoded(request.element_count);
  Decode(request.owner->row_type, reply.frames[0].bytes(), decoded);
  batch.SpreadRows(request.shard.index.value(), width, decoded, rows);
  return absl::OkStatus();
}

absl::Status TakeValues(const ShardRequest& request, const Message& reply) {
  if (request.owner->operation.keyed) return TakeRows(request, reply);
  const std::span<float> values = request.owner->operation.values;
  if (const WireFormat format = ValueFormatOf(request, reply); format != WireFormat::kFloat32) {
    COVEY_RETURN_IF_ERROR(CheckFrameChecksums(reply));
    Decode(format, reply.frames[0].bytes(),
           values.subspan(request.first_element, request.element_count));
    return absl::OkStatus();
  }
  const size_t array = values.size() / (1 + request.owner->operation.slots);
  size_t first = request.first_element;
  const CopyWay way =
      values.size_bytes() < kPastCachesBytes ? CopyWay::kThroughCaches : CopyWay::kPastCaches;
  return CheckFrameChecksums(reply, [&](const Buffer& frame) {
    uint8_t* const to = reinterpret_cast<uint8_t*>(&values[std::exchange(first, first + array)]);
    return CopyWithCrc32c(frame.bytes(), to, way);
  });
}

// The shard's answers, for the operation to join.
absl::Status TakeAnswers(const ShardRequest& request, const Message& reply) {
  ActiveOperation& owner = *request.owner;
  COVEY_ASSIGN_OR_RETURN(std::vector<VectorAnswer> answers,
                         AnswersFromProto(reply.envelope.pull_reply().answers()));
  if (answers.size() != owner.operation.queries.size()) {
    return absl::InvalidArgumentError(absl::StrCat("there are ", answers.size(), " answers to ",
                                                   owner.operation.queries.size(), " queries"));
  }
  owner.shard_answers[request.shard.index.value() - owner.operation.first_shard.value()] =
      std::move(answers);
  return absl::OkStatus();
}

}  // namespace

const proto::ShardState& StateOf(const Message& reply) {
  return reply.envelope.has_push_reply() ? reply.envelope.push_reply().state()
                                         : reply.envelope.pull_reply().state();
}

Verdict TakeReply(const ShardRequest& request, const Message& reply, const ClusterView& view,
                  Counters& counters) {
  absl::Status status = StatusOf(reply);
  if (IsRetryable(status)) return {Verdict::Kind::kRefused, std::move(status)};
  if (!status.ok()) return {Verdict::Kind::kFailed, std::move(status)};
  const Operation& operation = request.owner->operation;
  if (operation.scan) {
    if (absl::Status form = CheckScanFrames(request, reply); !form.ok()) {
      return {Verdict::Kind::kFailed, std::move(form)};
    }
  } else if (operation.pulls()) {
    if (request.pushes && !reply.envelope.push_reply().has_values()) {
      // It says that the push of an earlier attempt is durable; that attempt's reply was lost.
      return {Verdict::Kind::kValuesUnfit,
              absl::UnavailableError("received; the values are still missing")};
    }
    const size_t frames = request.element_count == 0 ? 0 : 1 + request.owner->operation.slots;
    const size_t bytes = ValueBytes(request, reply);
    const auto is_whole = [bytes](const Buffer& frame) { return frame.size() == bytes; };
    if (reply.frames.size() != frames ||
        !std::all_of(reply.frames.begin(), reply.frames.end(), is_whole)) {
      return {
          Verdict::Kind::kFailed,
          absl::InternalError(absl::StrCat(
              "shard ", request.shard.index.value(), " of table ", request.shard.table.value(),
              " answered with ", reply.frames.size(), " frames instead of ", frames, " of ", bytes,
              " bytes; if the server is of an earlier version than this program, replace it"))};
    }
  }
  if (absl::Status fit = CheckVersion(request, reply, view, counters); !fit.ok()) {
    return {Verdict::Kind::kValuesUnfit, std::move(fit)};
  }
  if (!operation.queries.empty()) {
    const absl::Status fit = TakeAnswers(request, reply);
    if (fit.ok()) return {};
    return {Verdict::Kind::kFailed,
            absl::InternalError(absl::StrCat(
                "shard ", request.shard.index.value(), " of table ", request.shard.table.value(),
                ": ", fit.message(),
                "; if the server is of an earlier version than this program, replace it"))};
  }
  const absl::Status intact = operation.pulls() && !operation.scan ? TakeValues(request, reply)
                                                                   : CheckFrameChecksums(reply);
  if (intact.ok() && operation.scan) {
    const proto::Shard* const shard = view.FindShard(request.shard);
    absl::Status taken = shard == nullptr ? TableDroppedError(view, request.shard)
                                          : TakeScannedRows(request, reply, *shard);
    if (!taken.ok()) return {Verdict::Kind::kFailed, std::move(taken)};
  }
  if (intact.ok()) return {};
  ++counters.damaged;
  return {Verdict::Kind::kValuesUnfit, intact};
}

void CountReply(const ShardRequest& request, const Message& reply) {
  const proto::ShardState& state = StateOf(reply);
  OperationResult& result = request.owner->result;
  result.version = std::min(result.version, Version(state.version()));
  if (request.owner->operation.keyed) {
    result.shard_versions[request.shard.index.value()] = {.generation = state.generation(),
                                                          .version = Version(state.version())};
  }
  result.age = std::max(result.age, absl::Milliseconds(state.age_ms()));
  if (!request.pushes) {
    // An optimizer without slots has no PullReply.samples.
    result.samples = std::max(result.samples, state.samples());
    return;
  }
  const proto::PushReply& pushed = reply.envelope.push_reply();
  result.staleness = std::max(result.staleness, pushed.staleness());
  result.duplicate = result.duplicate || pushed.duplicate();
  result.discarded = result.discarded || pushed.discarded();
  result.rows_refused += pushed.rows_refused();
}

}  // namespace covey::client
