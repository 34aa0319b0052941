// SPDX-License-Identifier: Apache-2.0
#include "client/engine/requests/request_message.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "common/table/key_list.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format_proto.h"
#include "common/vectors/vector_proto.h"

namespace covey::client {
namespace {

Buffer EncodeRowsOf(const Operation& operation, const ShardRequest& request) {
  const size_t rows = KeysOnWire(request).list.count();
  const size_t width = request.element_count / rows;
  Buffer encoded = Buffer::Allocate(EncodedRowBytes(operation.format, width, rows));
  EncodeRows(operation.format, width,
             operation.gradient.subspan(request.first_element, request.element_count),
             {encoded.MutableData(), encoded.size()});
  return encoded;
}

// The factors, or the elements that they make.
Buffer EncodeFactorsOf(const Operation& operation, const ShardRequest& request) {
  const Factors& factors = *operation.factors;
  const MatrixRange range = RangeOf(factors, request);
  const auto bytes = [](Buffer& buffer) {
    return std::span<uint8_t>(buffer.MutableData(), buffer.size());
  };
  if (request.terms > 0) {
    Buffer encoded = Buffer::Allocate(FactorBytes(operation.format, range, factors.terms));
    EncodeFactors(operation.format, range, factors, bytes(encoded));
    return encoded;
  }
  Buffer elements = Buffer::Allocate(request.element_count * sizeof(float));
  SumOuterProducts(range, factors, elements.MutableAs<float>());
  if (operation.format == WireFormat::kFloat32) return elements;
  Buffer encoded = Buffer::Allocate(EncodedBytes(operation.format, request.element_count));
  Encode(operation.format, elements.As<float>(), bytes(encoded));
  return encoded;
}

Buffer EncodeGradient(const Operation& operation, const ShardRequest& request) {
  if (operation.keyed) return EncodeRowsOf(operation, request);
  if (operation.factors) return EncodeFactorsOf(operation, request);
  Buffer encoded = Buffer::Allocate(EncodedBytes(operation.format, request.element_count));
  const std::span<const float> gradient =
      operation.gradient.subspan(request.first_element, request.element_count);
  const std::span<uint8_t> bytes(encoded.MutableData(), encoded.size());
  if (operation.residual.empty()) {
    Encode(operation.format, gradient, bytes);
  } else {
    EncodeWithFeedback(operation.format, gradient,
                       operation.residual.subspan(request.first_element, request.element_count),
                       bytes);
  }
  return encoded;
}

// The shard's part of each slot, behind the initial values.
void AddSlots(const ShardRequest& request, Message& message) {
  const Buffer& slots = request.owner->slots;
  const size_t slot_bytes = request.owner->operation.gradient.size_bytes();
  for (size_t begin = 0; begin < slots.size(); begin += slot_bytes) {
    Buffer part = slots.Slice(begin + request.first_element * sizeof(float),
                              request.element_count * sizeof(float));
    const uint32_t checksum = FrameChecksum(part);
    AddFrame(message, std::move(part), checksum);
  }
}

// The list of the request's keys, and their frame unless the request names them or no frame is
// `wanted`.
void FillKeys(const ShardRequest& request, bool wanted, proto::KeyList& list, Message& message) {
  const EncodedKeys& keys = KeysOnWire(request);
  list = keys.list;
  if (request.names_keys) {
    list.set_encoding(proto::KeyList::NAMED);
  } else if (wanted) {
    AddKeys(keys, message);
  }
}

void FillReadBound(const ShardRequest& request, proto::ReadBound& bound) {
  const ReadBound& read = request.owner->operation.read;
  bound.set_wanted(true);
  bound.set_step(read.step.value());
  bound.set_group(read.group.value());
  bound.set_min_version(std::max(read.min_version, request.version_floor).value());
  if (read.max_staleness) bound.set_max_staleness(*read.max_staleness);
  bound.set_max_age_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(read.max_age)));
  bound.set_value_format(ToProto(request.owner->operation.value_format));
}

}  // namespace

MatrixRange RangeOf(const Factors& factors, const ShardRequest& request) {
  return {.first_element = request.first_element,
          .elements = request.element_count,
          .columns = factors.right.size() / factors.terms};
}

uint32_t DeadlineMs(absl::Time now, absl::Time deadline) {
  return static_cast<uint32_t>(std::clamp<int64_t>(absl::ToInt64Milliseconds(deadline - now), 1,
                                                   absl::ToInt64Milliseconds(kBarrierMax)));
}

Message MessageTo(const ShardRequest& request, Epoch epoch) {
  Message message;
  message.set_to(request.head);
  message.envelope.mutable_header()->set_request_id(request.request_id);
  message.envelope.mutable_header()->set_epoch(epoch.value());
  return message;
}

proto::PushRequest PushBody(const Sender& sender, const ShardRequest& request) {
  const Operation& operation = request.owner->operation;
  proto::PushRequest push;
  proto::PushId& id = *push.mutable_id();
  id.set_table(request.shard.table.value());
  id.set_shard(request.shard.index.value());
  id.set_sequence(request.sequence);
  if (operation.group) {
    id.set_producer_kind(proto::PushId::GROUP);
    id.set_producer(operation.group->group.value());
    id.set_producer_incarnation(operation.group->generation);
    push.set_group(operation.group->group.value());
    push.set_group_generation(operation.group->generation);
    push.set_step(operation.group->step.value());
  } else {
    id.set_producer(sender.node.value());
    id.set_producer_incarnation(sender.incarnation.value());
  }
  push.set_shard_generation(request.generation);
  if (!operation.functions.empty()) {
    ToProto(operation.functions, *push.mutable_functions());
    return push;
  }
  push.set_samples(operation.samples);
  if (operation.rate_factor != 1) push.set_rate_factor(operation.rate_factor);
  push.set_initialization_epoch(operation.initialization.value());
  if (operation.initial_state) {
    push.mutable_initial_state()->set_updates(operation.initial_state->updates);
    push.mutable_initial_state()->set_samples(operation.initial_state->samples);
  }
  // Versions of an earlier generation say nothing about this one.
  if (request.base_generation == request.generation) {
    push.set_base_version(request.base_version.value());
  }
  push.set_format(ToProto(operation.format));
  if (request.terms > 0) {
    push.mutable_outer_product()->set_terms(static_cast<uint32_t>(request.terms));
  }
  return push;
}

const EncodedKeys& KeysOnWire(const ShardRequest& request) {
  return request.owner->operation.keyed->batch->OnWire(request.shard.index.value());
}

void AddKeys(const EncodedKeys& keys, Message& message) {
  if (!keys.frame.empty()) AddFrame(message, keys.frame, *keys.checksum);
}

size_t KeyBytes(const Message& message) {
  const proto::Envelope& envelope = message.envelope;
  const proto::KeyList& list =
      envelope.has_push_request() ? envelope.push_request().keys() : envelope.pull_request().keys();
  if (IsNamed(list)) return sizeof(KeyListName);
  return list.count() == 0 || message.frames.empty() ? 0 : message.frames[0].size();
}

Buffer GradientFrame(ShardRequest& request) {
  const Operation& operation = request.owner->operation;
  Buffer frame;
  if (!operation.functions.empty()) return frame;
  if (operation.format == WireFormat::kFloat32 && operation.residual.empty() &&
      !operation.factors) {
    frame = request.owner->gradient.Slice(request.first_element * sizeof(float),
                                          request.element_count * sizeof(float));
  } else {
    if (request.encoded.empty()) request.encoded = EncodeGradient(operation, request);
    frame = request.encoded;
  }
  if (!request.checksum) request.checksum = FrameChecksum(frame);
  return frame;
}

Message RequestMessage(absl::Time now, const Sender& sender, Epoch epoch, Attempt attempt,
                       ShardRequest& request) {
  const Operation& operation = request.owner->operation;
  Message message = MessageTo(request, epoch);
  const uint32_t deadline_ms = DeadlineMs(now, request.owner->deadline);
  if (request.pushes) {
    proto::PushRequest& push = *message.envelope.mutable_push_request();
    push = PushBody(sender, request);
    push.set_deadline_ms(deadline_ms);
    // A retry asks for no values, because these are usually in flight, too. If they were lost, the
    // reply that the push was received shows it.
    const bool wants_values = operation.pulls() && attempt == Attempt::kFirst;
    const bool has_bytes = !std::exchange(request.query_only, true);
    if (wants_values) FillReadBound(request, *push.mutable_read());
    if (operation.keyed) {
      FillKeys(request, wants_values || has_bytes, *push.mutable_keys(), message);
    }
    if (has_bytes && request.element_count > 0 && operation.functions.empty()) {
      Buffer gradient = GradientFrame(request);
      AddFrame(message, std::move(gradient), *request.checksum);
      AddSlots(request, message);
    }
    request.owner->sent_to.insert(request.head);
  } else {
    proto::PullRequest& pull = *message.envelope.mutable_pull_request();
    pull.set_table(request.shard.table.value());
    pull.set_shard(request.shard.index.value());
    pull.set_shard_generation(request.generation);
    pull.set_deadline_ms(deadline_ms);
    pull.set_with_slots(operation.slots > 0);
    if (operation.keyed) FillKeys(request, /*wanted=*/true, *pull.mutable_keys(), message);
    ToProto(operation.queries, *pull.mutable_queries());
    if (operation.scan) {
      proto::RowScan& scan = *pull.mutable_scan();
      scan.set_first(operation.scan->first);
      scan.set_generation(operation.scan->generation);
      if (operation.scan->since) scan.set_since(*operation.scan->since);
    }
    FillReadBound(request, *pull.mutable_read());
  }
  return message;
}

}  // namespace covey::client
