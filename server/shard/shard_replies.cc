// SPDX-License-Identifier: Apache-2.0
#include "server/shard/shard_replies.h"

#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/planted_bug.h"
#include "common/base/small_limits.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format_proto.h"
#include "common/vectors/vector_proto.h"
#include "server/shard/push_checks.h"
#include "server/shard/queue_budget.h"
#include "server/shard/replies.h"

namespace covey::server {
namespace {

constexpr size_t kSmallUndurable = 6;

}  // namespace

void ShardReplies::SendWhenFresh(absl::Time now, PendingReply pending, Outbox& outbox) {
  if (IsFreshEnough(now, pending)) {
    SendWhenDurable(now, pending, outbox);
  } else if (pending.deadline <= now) {
    Refuse(pending.reply,
           absl::DeadlineExceededError(absl::StrCat(
               "not as fresh as asked, and the request does not wait: ", Missing(now, pending))),
           outbox);
  } else if (const absl::Status full = Park(pending); !full.ok()) {
    Refuse(pending.reply,
           absl::ResourceExhaustedError(
               absl::StrCat(full.message(), " (now: ", Missing(now, pending), ")")),
           outbox);
  }
}

absl::Status ShardReplies::Park(PendingReply& pending) {
  if (BytesOf(pending) > 0) {
    COVEY_RETURN_IF_ERROR(shard_.budget.Check(QueueBudget::Request::kWaitingReader));
  }
  if (parked_.Park(pending)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(parked_.size(), " answers wait for this shard already; retry later"));
}

void ShardReplies::SendWhenDurable(absl::Time now, PendingReply& pending, Outbox& outbox) {
  if (undurable_.size() >= LimitInForce(kParkedPerShardMax, kSmallUndurable)) {
    Refuse(
        pending.reply,
        absl::ResourceExhaustedError(absl::StrCat(undurable_.size(), " answers wait for ",
                                                  shard_.replica.SuccessorName(), "; retry later")),
        outbox);
    return;
  }
  if (pending.scan) {
    const absl::Status scanned = AddScannedRows(*pending.scan, pending.reply);
    if (!scanned.ok()) return Refuse(pending.reply, scanned, outbox);
  }
  if (pending.push) {
    CompletePushReply(pending);
  } else {
    Describe(*pending.reply.envelope.mutable_pull_reply()->mutable_state());
  }
  const WireFormat value_format = ValueFormatOf(pending);
  if (pending.wants_values) {
    AddValues(pending, value_format);
    if (shard_.correction.compensates()) RecordSent(pending);
  }
  if (pending.wants_slots) AddSlots(pending.reply);
  if (!pending.queries.empty()) {
    ToProto(shard_.content().Answer(pending.queries),
            *pending.reply.envelope.mutable_pull_reply()->mutable_answers());
  }
  UndurableReply complete{.index = shard_.content().index(),
                          .reply = std::move(pending.reply),
                          .value_format = value_format,
                          .deadline = pending.deadline,
                          .updated = shard_.content().last_update()};
  if (durable() >= complete.index) {
    SendNow(now, std::move(complete), outbox);
  } else {
    undurable_.Add(std::move(complete));
  }
}

WireFormat ShardReplies::ValueFormatOf(const PendingReply& pending) const {
  if (!pending.wants_values || pending.wants_slots || shard_.content().sparse() != nullptr) {
    return WireFormat::kFloat32;
  }
  const WireFormat asked =
      WireFormatFromProto(pending.bound.value_format()).value_or(WireFormat::kFloat32);
  return NeedsFeedback(asked) ? WireFormat::kFloat32 : asked;
}

void ShardReplies::AddValues(PendingReply& pending, WireFormat format) {
  const SparseShard* const rows = shard_.content().sparse();
  if (rows == nullptr) {
    if (format == WireFormat::kFloat32) {
      AddFrame(pending.reply, shard_.content().Values(), shard_.content().ValuesChecksum());
    } else {
      pending.reply.frames.push_back(shard_.content().Values());
    }
    return;
  }
  const std::span<const uint64_t> keys = pending.keys->spans();
  if (keys.empty()) return;
  Buffer values = Buffer::Allocate(keys.size() * rows->layout().value_bytes());
  rows->Read(keys, {values.MutableData(), values.size()}, pending.keys->places.get());
  const uint32_t checksum = FrameChecksum(values);
  AddFrame(pending.reply, std::move(values), checksum);
}

void ShardReplies::EncodeValues(WireFormat format, Message& reply) {
  Buffer values = std::exchange(reply.frames, {}).front();
  if (encoded_.values.data() != values.data() || encoded_.format != format) {
    const std::span<const float> elements = values.As<float>();
    Buffer frame = shard_.spares.Take(EncodedBytes(format, elements.size()));
    Encode(format, elements, {frame.MutableData(), frame.size()});
    const uint32_t checksum = FrameChecksum(frame);
    encoded_ = {.values = std::move(values),
                .format = format,
                .frame = std::move(frame),
                .checksum = checksum};
  }
  AddFrame(reply, encoded_.frame, encoded_.checksum);
  if (reply.envelope.has_push_reply()) {
    reply.envelope.mutable_push_reply()->set_value_format(ToProto(format));
  } else {
    reply.envelope.mutable_pull_reply()->set_value_format(ToProto(format));
  }
}

absl::Status ShardReplies::AddScannedRows(const proto::RowScan& scan, Message& reply) {
  const uint64_t generation = shard_.replica.generation();
  if (scan.generation() != 0 && scan.generation() != generation) {
    return absl::OutOfRangeError(absl::StrCat(
        "what was read is of generation ", scan.generation(), ", and the shard was lost and made ",
        "again since, as generation ", generation, "; read all rows again"));
  }
  const SparseShard& rows = *shard_.content().sparse();
  RowScan wanted{.first = scan.first()};
  if (scan.has_since()) wanted.since = scan.since();
  COVEY_RETURN_IF_ERROR(rows.CheckScan(wanted));
  ScannedRows piece = rows.Scan(wanted);
  proto::ScannedRows& scanned = *reply.envelope.mutable_pull_reply()->mutable_scanned();
  scanned.set_last(piece.last);
  scanned.set_rows(static_cast<uint32_t>(piece.keys.size() / sizeof(uint64_t)));
  scanned.set_removed(static_cast<uint32_t>(piece.removed.size() / sizeof(uint64_t)));
  for (Buffer* const frame : {&piece.keys, &piece.values, &piece.removed}) {
    if (frame->empty()) continue;
    const uint32_t checksum = FrameChecksum(*frame);
    AddFrame(reply, std::move(*frame), checksum);
  }
  return absl::OkStatus();
}

void ShardReplies::AddSlots(Message& reply) {
  reply.envelope.mutable_pull_reply()->set_samples(shard_.content().samples());
  for (size_t slot = 0; slot < shard_.content().slots(); ++slot) {
    Buffer bytes = shard_.content().Slot(slot);
    const uint32_t checksum = FrameChecksum(bytes);
    AddFrame(reply, std::move(bytes), checksum);
  }
}

void ShardReplies::CompletePushReply(PendingReply& pending) {
  const PushKey& key = pending.push->key;
  const absl::StatusOr<PushHistory::Finding> finding = shard_.content().push_history().Find(key);
  const bool recorded = finding.ok() && finding->known;
  const Version applied = recorded ? finding->version : Version();
  const Version base = pending.push->base_version;
  proto::PushReply& reply = *pending.reply.envelope.mutable_push_reply();
  reply.set_applied_version(applied.value());
  reply.set_durable(recorded || pending.push->initial_values ||
                    shard_.ledger.AckOf(key) == AckLedger::Ack::kEarly);
  reply.set_duplicate(pending.push->duplicate);
  if (!reply.durable()) shard_.ledger.OweReply(key, pending.reply);
  reply.set_discarded(recorded && finding->discarded);
  reply.set_has_values(pending.wants_values);
  if (recorded && applied == shard_.version()) {
    reply.set_rows_refused(shard_.content().rows_refused());
  }
  if (base != Version() && applied > base) {
    reply.set_staleness(applied.value() - base.value() - 1);
  }
  Describe(*reply.mutable_state());
  // Those of another call may still replace these, and no reader sees versions go back.
  if (pending.push->initial_values) {
    reply.mutable_state()->clear_version();
    reply.mutable_state()->clear_samples();
  }
}

void ShardReplies::QueueDurableAcks(absl::Time now, const AggregatedUpdate& update) {
  for (const ReceivedPush& push : update.pushes) {
    std::optional<Message> owed = shard_.ledger.TakeRecorded(push.key);
    if (!owed) continue;
    proto::PushReply& reply = *owed->envelope.mutable_push_reply();
    reply.set_applied_version(push.is_discarded ? 0 : shard_.version().value());
    reply.set_discarded(push.is_discarded);
    reply.set_rows_refused(shard_.content().rows_refused());
    reply.set_durable(true);
    Describe(*reply.mutable_state());
    undurable_.Add({.index = shard_.content().index(),
                    .reply = *std::move(owed),
                    .deadline = absl::InfiniteFuture(),
                    .updated = now});
  }
}

void ShardReplies::Refuse(Message& reply, const absl::Status& why, Outbox& outbox) const {
  const bool is_push = reply.envelope.has_push_reply();
  MakeRefusal(Annotate(absl::StrCat(is_push ? "push " : "pull ", shard_.Where()), why), reply);
  if (absl::IsResourceExhausted(why)) ++shard_.counters.refused;
  outbox.Send(std::move(reply));
}

void ShardReplies::ReleaseParked(absl::Time now, Outbox& outbox) {
  parked_.Take([&](const PendingReply& pending) { return IsFreshEnough(now, pending); },
               [&](PendingReply& pending) { SendWhenDurable(now, pending, outbox); });
}

void ShardReplies::FollowContract(const Contract& contract) {
  parked_.ForEach([&](PendingReply& pending) {
    pending.requirement = ReadRequirement::Of(pending.bound, contract);
  });
}

void ShardReplies::RefuseLateParked(absl::Time now, Outbox& outbox) {
  parked_.Take([now](const PendingReply& pending) { return pending.deadline <= now; },
               [&](PendingReply& pending) {
                 Refuse(pending.reply,
                        absl::DeadlineExceededError(absl::StrCat(
                            "not as fresh as asked before the deadline: ", Missing(now, pending),
                            "; see `covey status` for who is behind, or allow more "
                            "time")),
                        outbox);
               });
}

void ShardReplies::RefuseParked(const absl::Status& why, Outbox& outbox) {
  parked_.Take([](const PendingReply&) { return true; },
               [&](PendingReply& pending) { Refuse(pending.reply, why, outbox); });
}

void ShardReplies::SendDurable(absl::Time now, Outbox& outbox) {
  undurable_.TakeDurable(
      durable(), [&](UndurableReply& complete) { SendNow(now, std::move(complete), outbox); });
}

void ShardReplies::RefuseLateUndurable(absl::Time now, Outbox& outbox) {
  undurable_.TakeLate(now, [&](UndurableReply& complete) {
    Refuse(complete.reply,
           absl::DeadlineExceededError(
               absl::StrCat("applied here, but not acknowledged before the deadline by ",
                            shard_.replica.SuccessorName(),
                            ", next in the chain; ask again, it is lost or durable then")),
           outbox);
  });
}

void ShardReplies::RefuseUndurable(const absl::Status& why, Outbox& outbox) {
  undurable_.TakeLate(absl::InfiniteFuture(), [&](UndurableReply& complete) {
    // A sender that is owed only the news of durability learns from the view that the head changed.
    if (complete.deadline != absl::InfiniteFuture()) Refuse(complete.reply, why, outbox);
  });
}

bool ShardReplies::IsFreshEnough(absl::Time now, const PendingReply& pending) const {
  return (KnowsGroups(pending) && IsMet(pending.requirement, FreshnessAt(now))) ||
         Planted(PlantedBug::kAnswerStaleReads);
}

bool ShardReplies::KnowsGroups(const PendingReply& pending) const {
  const ReadRequirement& requirement = pending.requirement;
  return pending.view <= shard_.view->epoch() || (requirement.step.value_or(Step()) == Step() &&
                                                  requirement.round.value_or(Step()) == Step());
}

std::string ShardReplies::Missing(absl::Time now, const PendingReply& pending) const {
  if (KnowsGroups(pending)) return covey::Missing(pending.requirement, FreshnessAt(now));
  return absl::StrCat("the server has the view of epoch ", shard_.view->epoch().value(),
                      " and waits for that of epoch ", pending.view.value(),
                      ", which the reader has");
}

Freshness ShardReplies::FreshnessAt(absl::Time now) const {
  return {.clocks = shard_.content().clocks(),
          .live_groups = shard_.waited_for,
          .version = shard_.version(),
          .age = now - shard_.content().last_update()};
}

void ShardReplies::SendNow(absl::Time now, UndurableReply complete, Outbox& outbox) {
  proto::Envelope& envelope = complete.reply.envelope;
  proto::ShardState& state = envelope.has_push_reply()
                                 ? *envelope.mutable_push_reply()->mutable_state()
                                 : *envelope.mutable_pull_reply()->mutable_state();
  state.set_age_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(now - complete.updated)));
  if (complete.value_format != WireFormat::kFloat32) {
    EncodeValues(complete.value_format, complete.reply);
  }
  for (const Buffer& frame : complete.reply.frames) shard_.counters.reply_bytes += frame.size();
  outbox.Send(std::move(complete.reply));
}

void ShardReplies::RecordSent(const PendingReply& pending) {
  const uint32_t group = pending.bound.group();
  const Producer reader =
      pending.push ? pending.push->key.producer
      : group != 0 ? Producer{.kind = Producer::Kind::kGroup, .id = group}
                   : Producer{.kind = Producer::Kind::kClient, .id = pending.node.value()};
  if (IsGone(reader, *shard_.view)) return;
  // A group computes on the values in the replies to its pushes, and on its first pull.
  const bool is_first = reader.kind == Producer::Kind::kGroup && !pending.push;
  shard_.correction.RecordSent(reader, shard_.version(), pending.reply.frames.back(), is_first);
}

void ShardReplies::Describe(proto::ShardState& state) const {
  shard_.content().clocks().Describe(shard_.version(), state);
  state.set_samples(shard_.content().samples());
  state.set_generation(shard_.replica.generation());
}

uint64_t ShardReplies::durable() const {
  return Planted(PlantedBug::kAcknowledgeBeforeReplicate) ? shard_.content().index()
                                                          : shard_.replica.durable();
}

}  // namespace covey::server
