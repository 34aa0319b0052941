// SPDX-License-Identifier: Apache-2.0

// How a Shard replies; the rest of it is in shard.cc.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "server/shard/push_checks.h"
#include "server/shard/replies.h"
#include "server/shard/shard.h"

namespace covey::server {

void Shard::QueueDurableAcks(absl::Time now, const AggregatedUpdate& update) {
  for (const ReceivedPush& push : update.pushes) {
    std::optional<Message> owed = ledger_.TakeRecorded(push.key);
    if (!owed) continue;
    proto::PushReply& reply = *owed->envelope.mutable_push_reply();
    reply.set_applied_version(version().value());
    reply.set_durable(true);
    Describe(*reply.mutable_state());
    undurable_.Add({.index = content().index(),
                    .reply = *std::move(owed),
                    .deadline = absl::InfiniteFuture(),
                    .updated = now});
  }
}

void Shard::Pull(absl::Time now, const Message& request, Outbox& outbox) {
  const proto::PullRequest& pull = request.envelope.pull_request();
  ++environment_.counters.pulls;
  PendingReply pending = BeginPendingReply(now, request, pull.read(), pull.deadline_ms());
  pending.requirement = ReadRequirement::Of(pending.bound, contract());
  ReplyWhenFresh(now, std::move(pending), outbox);
}

void Shard::Close(absl::Time now, const absl::Status& why, Outbox& outbox) {
  replica_.SetEarlyAcksPending(now, false, outbox);
  parked_.Take([](const PendingReply&) { return true; },
               [&](PendingReply& pending) { Refuse(pending.reply, why, outbox); });
  undurable_.TakeLate(absl::InfiniteFuture(), [&](UndurableReply& complete) {
    // A sender that is owed only the news of durability learns from the view that the head changed.
    if (complete.deadline != absl::InfiniteFuture()) Refuse(complete.reply, why, outbox);
  });
}

void Shard::ReleaseParked(absl::Time now, Outbox& outbox) {
  parked_.Take([&](const PendingReply& pending) { return IsFreshEnough(now, pending.requirement); },
               [&](PendingReply& pending) { ReplyWhenDurable(now, pending, outbox); });
}

void Shard::ReplyWhenFresh(absl::Time now, PendingReply pending, Outbox& outbox) {
  if (IsFreshEnough(now, pending.requirement)) {
    ReplyWhenDurable(now, pending, outbox);
  } else if (pending.deadline <= now) {
    Refuse(pending.reply,
           absl::DeadlineExceededError(
               absl::StrCat("not as fresh as asked, and the request does not wait: ",
                            Missing(pending.requirement, FreshnessAt(now)))),
           outbox);
  } else if (!parked_.Park(pending)) {
    Refuse(pending.reply,
           absl::ResourceExhaustedError(absl::StrCat(
               parked_.size(), " answers wait for this shard already; retry later (now: ",
               Missing(pending.requirement, FreshnessAt(now)), ")")),
           outbox);
  }
}

bool Shard::IsFreshEnough(absl::Time now, const ReadRequirement& requirement) const {
  return IsMet(requirement, FreshnessAt(now)) || Planted(PlantedBug::kAnswerStaleReads);
}

Freshness Shard::FreshnessAt(absl::Time now) const {
  return {.clocks = content().clocks(),
          .live_groups = waited_for_,
          .version = version(),
          .age = now - content().last_update()};
}

void Shard::ReplyWhenDurable(absl::Time now, PendingReply& pending, Outbox& outbox) {
  if (undurable_.size() >= kParkedPerShardMax) {
    Refuse(pending.reply,
           absl::ResourceExhaustedError(absl::StrCat(undurable_.size(), " answers wait for ",
                                                     replica_.SuccessorName(), "; retry later")),
           outbox);
    return;
  }
  if (pending.push) {
    const PushKey& key = pending.push->key;
    proto::PushReply& reply = *pending.reply.envelope.mutable_push_reply();
    const absl::StatusOr<PushHistory::Finding> finding = content().push_history().Find(key);
    const bool recorded = finding.ok() && finding->known;
    const Version applied = recorded ? finding->version : Version();
    const Version base = pending.push->base_version;
    reply.set_applied_version(applied.value());
    reply.set_durable(recorded || ledger_.AckOf(key) == AckLedger::Ack::kEarly);
    reply.set_duplicate(pending.push->duplicate);
    if (!reply.durable()) ledger_.OweReply(key, pending.reply);
    reply.set_discarded(recorded && finding->discarded);
    reply.set_has_values(pending.wants_values);
    if (base != Version() && applied > base) {
      reply.set_staleness(applied.value() - base.value() - 1);
    }
    Describe(*reply.mutable_state());
  } else {
    Describe(*pending.reply.envelope.mutable_pull_reply()->mutable_state());
  }
  if (pending.wants_values) {
    AddFrame(pending.reply, Values(), content().ValuesChecksum());
    if (correction_.compensates()) RecordSent(pending);
  }
  UndurableReply complete{.index = content().index(),
                          .reply = std::move(pending.reply),
                          .deadline = pending.deadline,
                          .updated = content().last_update()};
  if (durable() >= complete.index) {
    SendNow(now, std::move(complete), outbox);
  } else {
    undurable_.Add(std::move(complete));
  }
}

void Shard::SendNow(absl::Time now, UndurableReply complete, Outbox& outbox) {
  proto::Envelope& envelope = complete.reply.envelope;
  proto::ShardState& state = envelope.has_push_reply()
                                 ? *envelope.mutable_push_reply()->mutable_state()
                                 : *envelope.mutable_pull_reply()->mutable_state();
  state.set_age_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(now - complete.updated)));
  outbox.Send(std::move(complete.reply));
}

void Shard::RecordSent(const PendingReply& pending) {
  const uint32_t group = pending.bound.group();
  const Producer reader =
      pending.push ? pending.push->key.producer
      : group != 0 ? Producer{.kind = Producer::Kind::kGroup, .id = group}
                   : Producer{.kind = Producer::Kind::kClient, .id = pending.node.value()};
  if (IsGone(reader, *view_)) return;
  // A group computes on the values in the replies to its pushes, and on its first pull.
  const bool is_first = reader.kind == Producer::Kind::kGroup && !pending.push;
  correction_.RecordSent(reader, version(), pending.reply.frames.back(), is_first);
}

void Shard::Refuse(Message& reply, const absl::Status& why, Outbox& outbox) const {
  const bool is_push = reply.envelope.has_push_reply();
  MakeRefusal(Annotate(absl::StrCat(is_push ? "push " : "pull ", Where()), why), reply);
  if (absl::IsResourceExhausted(why)) ++environment_.counters.refused;
  outbox.Send(std::move(reply));
}

void Shard::Describe(proto::ShardState& state) const {
  content().clocks().Describe(version(), state);
  state.set_samples(samples());
  state.set_generation(generation());
}

std::string Shard::Where() const {
  return absl::StrCat("table=", table_name_, " shard=", id_.index.value());
}

}  // namespace covey::server
