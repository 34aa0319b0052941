// SPDX-License-Identifier: Apache-2.0
#include "server/replication/shard_record.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/small_limits.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "common/table/evict_by.h"
#include "common/tensor/wire_format_proto.h"
#include "common/vectors/vector_proto.h"

namespace covey::server {
namespace {

constexpr size_t kSmallRecordsInFlight = 4;

// Precondition: there are a frame of values and those of the slots.
InitialState InitialStateOf(const proto::InitialState& state, const Message& message) {
  InitialState initial{.slots = {}, .updates = state.updates(), .samples = state.samples()};
  for (size_t i = 1; i < message.frames.size(); ++i) {
    initial.slots.push_back(EncodedFrameOf(message, i));
  }
  return initial;
}

absl::Status CheckInitialValues(const proto::ReplicateRequest& request, const Message& message,
                                const GradientShape& shape) {
  const proto::InitialState& state = request.initial_state();
  const bool frames_fit =
      !shape.is_sparse() &&
      std::all_of(
          message.frames.begin(), message.frames.end(),
          [&](const Buffer& frame) { return frame.size() == shape.elements * sizeof(float); }) &&
      (request.has_initial_state() ? !message.frames.empty() : message.frames.size() == 1);
  if (request.version() == 0 && !request.has_outer_product() && request.pushes().empty() &&
      request.cut() == 0 && request.format() == proto::WIRE_FLOAT32 && frames_fit &&
      state.updates() <= kInitialUpdatesMax && state.samples() <= kInitialSamplesMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("record ", request.index(), " holds initial values that do not fit a shard of ",
                   shape.elements, " elements; run servers of one version"));
}

void Describe(const Eviction& eviction, proto::Eviction& to) {
  to.set_first(eviction.first);
  to.set_last(eviction.last);
  to.set_score(eviction.score);
  to.set_tie(eviction.tie);
  to.set_salt(eviction.salt);
  to.set_by(EvictByToProto(eviction.by));
  to.set_pending(eviction.of == Eviction::Of::kPending);
}

Eviction EvictionOf(const proto::Eviction& from) {
  const uint32_t error = Planted(PlantedBug::kEvictionDiffers) ? 1 : 0;
  return {.of = from.pending() ? Eviction::Of::kPending : Eviction::Of::kRows,
          .by = *EvictByFromProto(from.by()),
          .first = from.first(),
          .last = from.last(),
          .score = from.score() + error,
          .tie = from.tie(),
          .salt = from.salt()};
}

bool AreEvictions(const proto::ReplicateRequest& request, const GradientShape& shape) {
  const auto& evictions = request.evictions();
  const bool may_be = shape.is_sparse() || evictions.empty();
  return may_be && static_cast<size_t>(evictions.size()) <= kEvictionsPerRecordMax &&
         std::all_of(evictions.begin(), evictions.end(), [](const proto::Eviction& eviction) {
           return EvictByFromProto(eviction.by()).has_value();
         });
}

absl::Status CheckUpdate(const proto::ReplicateRequest& request, const Message& message,
                         const GradientShape& shape) {
  const std::optional<WireFormat> format = WireFormatFromProto(request.format());
  const bool takes_factors =
      !request.has_outer_product() ||
      (format && CheckOuterProduct(request.outer_product(), *format, shape).ok());
  const bool fits = takes_factors &&
                    AreGradientFrames(message, request.format(), request.keys(), shape,
                                      request.outer_product().terms()) &&
                    AreEvictions(request, shape);
  const bool momentum_fits =
      !request.has_momentum() || (request.momentum() >= 0 && request.momentum() < 1);
  if (fits && momentum_fits && std::isfinite(request.rate_factor()) && request.samples() > 0 &&
      request.samples() <= kShardSamplesMax) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "record ", request.index(), " holds an update that does not fit a shard of ",
      shape.is_sparse() ? absl::StrCat("rows of ", shape.row_width) : absl::StrCat(shape.elements),
      " elements; run servers of one version"));
}

// The numbers of vectors are checked where they are applied.
absl::StatusOr<std::vector<VectorFunction>> FunctionsOf(const proto::ReplicateRequest& request,
                                                        const Message& message,
                                                        const GradientShape& shape) {
  if (shape.is_sparse() || !message.frames.empty() || request.samples() != 0 ||
      request.has_outer_product()) {
    return absl::InvalidArgumentError(absl::StrCat("record ", request.index(),
                                                   " holds functions, and a gradient or rows; run ",
                                                   "servers of one version"));
  }
  return FunctionsFromProto(request.functions());
}

}  // namespace

ShardRecord CutRecord(uint64_t snapshot, Epoch epoch) {
  ShardRecord record;
  record.cut = snapshot;
  record.cut_epoch = epoch;
  return record;
}

ShardRecord InitialValuesRecord(EncodedGradient values, std::optional<InitialState> state) {
  ShardRecord record;
  record.initial_values = true;
  record.initial_state = std::move(state);
  record.gradient = std::move(values);
  return record;
}

size_t ShardRecord::frame_bytes() const {
  size_t bytes = gradient.frame_bytes();
  if (!initial_state) return bytes;
  for (const EncodedGradient& slot : initial_state->slots) bytes += slot.frame.size();
  return bytes;
}

Message ToMessage(ShardRecord& record) {
  Message message;
  proto::ReplicateRequest& request = *message.envelope.mutable_replicate_request();
  request.set_index(record.index);
  request.set_version(record.version.value());
  for (const RecordedPush& push : record.pushes) {
    proto::ReplicatedPush& entry = *request.add_pushes();
    proto::PushId& id = *entry.mutable_id();
    id.set_producer(push.key.producer.id);
    id.set_producer_kind(push.key.producer.kind == Producer::Kind::kGroup ? proto::PushId::GROUP
                                                                          : proto::PushId::CLIENT);
    id.set_producer_incarnation(push.key.incarnation);
    id.set_sequence(push.key.sequence);
    entry.set_group(push.group.value());
    entry.set_step(push.step.value());
    entry.set_discarded(push.discarded);
    entry.set_norm(push.norm);
    entry.set_beyond_gate(push.is_beyond_gate);
  }
  if (record.digest) request.set_digest(*record.digest);
  request.set_cut(record.cut);
  request.set_cut_epoch(record.cut_epoch.value());
  request.set_initial_values(record.initial_values);
  if (record.version == Version() && !record.initial_values) return message;
  if (record.version != Version()) {
    request.set_samples(record.samples);
    request.set_rate_factor(record.adjustment.rate_factor);
    if (record.adjustment.momentum) request.set_momentum(*record.adjustment.momentum);
    if (record.asynchrony != AsynchronyEstimates()) {
      Describe(record.asynchrony, *request.mutable_asynchrony());
    }
  }
  if (!record.functions.empty()) {
    ToProto(record.functions, *request.mutable_functions());
    return message;
  }
  request.set_format(record.gradient.format);
  if (record.gradient.terms > 0) {
    request.mutable_outer_product()->set_terms(static_cast<uint32_t>(record.gradient.terms));
  }
  if (record.gradient.keys) *request.mutable_keys() = record.gradient.keys->list;
  for (const Eviction& eviction : record.evictions) Describe(eviction, *request.add_evictions());
  AddGradientFrames(record.gradient, message);
  if (!record.initial_state) return message;
  request.mutable_initial_state()->set_updates(record.initial_state->updates);
  request.mutable_initial_state()->set_samples(record.initial_state->samples);
  for (EncodedGradient& slot : record.initial_state->slots) AddGradientFrames(slot, message);
  return message;
}

Message QueryAfter(uint64_t index) {
  Message message;
  message.envelope.mutable_replicate_request()->set_index(index);
  return message;
}

bool IsQuery(const proto::ReplicateRequest& request) {
  return request.version() == 0 && request.pushes().empty() && request.cut() == 0 &&
         !request.initial_values();
}

absl::StatusOr<AsynchronyEstimates> AsynchronyOf(const proto::AsynchronyEstimates& estimates) {
  if (!std::isfinite(estimates.staleness()) || estimates.staleness() < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a mean staleness of ", estimates.staleness(),
                                                   " updates; run servers of one version"));
  }
  return AsynchronyEstimates{.staleness = estimates.staleness(),
                             .pushes = estimates.pushes(),
                             .updates_above_target = estimates.updates_above_target()};
}

void Describe(const AsynchronyEstimates& estimates, proto::AsynchronyEstimates& to) {
  to.set_staleness(estimates.staleness);
  to.set_pushes(estimates.pushes);
  to.set_updates_above_target(estimates.updates_above_target);
}

absl::StatusOr<ShardRecord> ShardRecordOf(const Message& message, const GradientShape& shape) {
  const proto::ReplicateRequest& request = message.envelope.replicate_request();
  ShardRecord record{.index = request.index(),
                     .version = Version(request.version()),
                     .pushes = {},
                     .samples = request.samples(),
                     .adjustment = {.rate_factor = request.rate_factor()},
                     .asynchrony = {},
                     .gradient = {},
                     .evictions = {},
                     .functions = {},
                     .initial_values = request.initial_values(),
                     .initial_state = {},
                     .digest = {},
                     .cut = request.cut(),
                     .cut_epoch = Epoch(request.cut_epoch())};
  for (const proto::ReplicatedPush& push : request.pushes()) {
    record.pushes.push_back({.key = KeyOf(push.id()),
                             .group = GroupId(push.group()),
                             .step = Step(push.step()),
                             .discarded = push.discarded(),
                             .norm = push.norm(),
                             .is_beyond_gate = push.beyond_gate()});
    if (push.norm() != 0 && !IsNorm(push.norm())) {
      return absl::InvalidArgumentError(absl::StrCat("record ", request.index(),
                                                     " holds a push of norm ", push.norm(),
                                                     "; run servers of one version"));
    }
  }
  if (request.has_digest()) record.digest = request.digest();
  if (record.cut != 0 && (record.version != Version() || !record.pushes.empty())) {
    return absl::InvalidArgumentError(absl::StrCat("record ", request.index(),
                                                   " is a cut, and holds pushes or an update; run "
                                                   "servers of one version"));
  }
  if (record.initial_values) {
    COVEY_RETURN_IF_ERROR(CheckInitialValues(request, message, shape));
    if (request.has_initial_state()) {
      record.initial_state = InitialStateOf(request.initial_state(), message);
    }
    record.gradient = EncodedFrameOf(message, 0);
    return record;
  }
  if (record.version == Version()) return record;
  COVEY_ASSIGN_OR_RETURN(record.asynchrony, AsynchronyOf(request.asynchrony()));
  if (!request.functions().empty()) {
    COVEY_ASSIGN_OR_RETURN(record.functions, FunctionsOf(request, message, shape));
    return record;
  }
  COVEY_RETURN_IF_ERROR(CheckUpdate(request, message, shape));
  if (request.has_momentum()) record.adjustment.momentum = request.momentum();
  record.gradient = EncodedGradientOf(message, request.format(), request.keys(), shape,
                                      request.outer_product().terms());
  for (const proto::Eviction& eviction : request.evictions()) {
    record.evictions.push_back(EvictionOf(eviction));
  }
  return record;
}

void RecordLog::Reset(uint64_t next) {
  records_.clear();
  bytes_ = 0;
  first_ = next;
}

void RecordLog::Add(ShardRecord record) {
  COVEY_CHECK(record.index == next());
  bytes_ += record.frame_bytes();
  records_.push_back(std::move(record));
}

void RecordLog::TrimBelow(uint64_t index) {
  while (!records_.empty() && first_ < index) {
    bytes_ -= records_.front().frame_bytes();
    records_.pop_front();
    ++first_;
  }
}

bool RecordLog::IsFull() const {
  return records_.size() >= LimitInForce(kRecordsInFlightPerShard, kSmallRecordsInFlight) ||
         bytes_ >= kRecordBytesInFlightPerShard;
}

}  // namespace covey::server
