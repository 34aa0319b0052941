// How a Shard answers; the rest of it is in shard.cc.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/planted_bug.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "server/shard/push_checks.h"
#include "server/shard/shard.h"

namespace covey::server {
namespace {

// Advice to who is refused because too much waits: about as long as a full window takes.
constexpr uint32_t kRetryAfterMs = 20;

}  // namespace

void Shard::SendReceipts(absl::Time now, const GatheredUpdate& update) {
  for (const GatheredPush& push : update.pushes) {
    std::optional<Message> receipt = held_.Take(push.key);
    if (!receipt) continue;
    proto::PushReply& reply = *receipt->envelope.mutable_push_reply();
    reply.set_applied_version(version().value());
    reply.set_durable(true);
    Describe(*reply.mutable_state());
    undurable_.Add({.index = content().index(),
                    .reply = *std::move(receipt),
                    .deadline = absl::InfiniteFuture(),
                    .updated = now});
  }
}

void Shard::Pull(absl::Time now, const Message& request, Outbox& outbox) {
  const proto::PullRequest& pull = request.envelope.pull_request();
  ++environment_.counters.pulls;
  PendingAnswer answer = BeginAnswer(now, request, pull.read(), pull.deadline_ms());
  proto::PullReply& reply = *answer.reply.envelope.mutable_pull_reply();
  reply.set_table(pull.table());
  reply.set_shard(pull.shard());
  answer.requirement = ReadRequirement::Of(answer.bound, contract());
  Answer(now, std::move(answer), outbox);
}

void Shard::Close(absl::Time now, const absl::Status& why, Outbox& outbox) {
  replica_.SetKeepsPromises(now, true, outbox);
  parked_.Take([](const PendingAnswer&) { return true; },
               [&](PendingAnswer& answer) { Fail(answer.reply, why, outbox); });
  undurable_.TakeLate(absl::InfiniteFuture(), [&](UndurableAnswer& answer) {
    // Who waits for a receipt has another way to know that the primary is another one.
    if (answer.deadline != absl::InfiniteFuture()) Fail(answer.reply, why, outbox);
  });
}

void Shard::ReleaseParked(absl::Time now, Outbox& outbox) {
  parked_.Take([&](const PendingAnswer& answer) { return MayAnswer(now, answer.requirement); },
               [&](PendingAnswer& answer) { Send(now, answer, outbox); });
}

void Shard::Answer(absl::Time now, PendingAnswer answer, Outbox& outbox) {
  if (MayAnswer(now, answer.requirement)) {
    Send(now, answer, outbox);
  } else if (answer.deadline <= now) {
    Fail(answer.reply,
         absl::DeadlineExceededError(
             absl::StrCat("not as fresh as asked, and the request does not wait: ",
                          Missing(answer.requirement, FreshnessAt(now)))),
         outbox);
  } else if (!parked_.Park(answer)) {
    Fail(answer.reply,
         absl::ResourceExhaustedError(absl::StrCat(
             parked_.size(), " answers wait for this shard already; retry later (now: ",
             Missing(answer.requirement, FreshnessAt(now)), ")")),
         outbox);
  }
}

bool Shard::MayAnswer(absl::Time now, const ReadRequirement& requirement) const {
  return IsMet(requirement, FreshnessAt(now)) || Planted(PlantedBug::kAnswerStaleReads);
}

Freshness Shard::FreshnessAt(absl::Time now) const {
  return {.clocks = content().clocks(),
          .live_groups = waited_for_,
          .version = version(),
          .age = now - content().last_update()};
}

void Shard::Send(absl::Time now, PendingAnswer& answer, Outbox& outbox) {
  if (undurable_.size() >= kParkedPerShardMax) {
    Fail(answer.reply,
         absl::ResourceExhaustedError(absl::StrCat(undurable_.size(), " answers wait for ",
                                                   replica_.SuccessorName(), "; retry later")),
         outbox);
    return;
  }
  if (answer.push) {
    const PushKey& key = answer.push->key;
    proto::PushReply& reply = *answer.reply.envelope.mutable_push_reply();
    const absl::StatusOr<Producers::Finding> finding = content().producers().Find(key);
    const bool recorded = finding.ok() && finding->known;
    const Version applied = recorded ? finding->version : Version();
    const Version base = answer.push->base_version;
    reply.set_applied_version(applied.value());
    reply.set_durable(recorded || held_.IsPledged(key));
    reply.set_duplicate(answer.push->duplicate);
    if (!reply.durable()) held_.SetReceipt(key, answer.reply);
    reply.set_discarded(recorded && finding->discarded);
    reply.set_has_values(answer.wants_values);
    if (base != Version() && applied > base) {
      reply.set_staleness(applied.value() - base.value() - 1);
    }
    Describe(*reply.mutable_state());
  } else {
    Describe(*answer.reply.envelope.mutable_pull_reply()->mutable_state());
  }
  if (answer.wants_values) {
    AddFrame(answer.reply, Values(), content().ValuesChecksum());
    if (asynchrony_.compensates()) NoteSent(answer);
  }
  UndurableAnswer complete{.index = content().index(),
                           .reply = std::move(answer.reply),
                           .deadline = answer.deadline,
                           .updated = content().last_update()};
  if (durable() >= complete.index) {
    Post(now, std::move(complete), outbox);
  } else {
    undurable_.Add(std::move(complete));
  }
}

void Shard::Post(absl::Time now, UndurableAnswer answer, Outbox& outbox) {
  proto::Envelope& envelope = answer.reply.envelope;
  proto::ShardState& state = envelope.has_push_reply()
                                 ? *envelope.mutable_push_reply()->mutable_state()
                                 : *envelope.mutable_pull_reply()->mutable_state();
  state.set_age_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(now - answer.updated)));
  outbox.Send(std::move(answer.reply));
}

void Shard::NoteSent(const PendingAnswer& answer) {
  const uint32_t group = answer.bound.group();
  const Producer reader =
      answer.push  ? answer.push->key.producer
      : group != 0 ? Producer{.kind = Producer::Kind::kGroup, .id = group}
                   : Producer{.kind = Producer::Kind::kClient, .id = answer.node.value()};
  if (IsGone(reader, *view_)) return;
  // A group computes on what its pushes are answered with, and on its first pull.
  const bool is_first = reader.kind == Producer::Kind::kGroup && !answer.push;
  asynchrony_.NoteSent(reader, version(), answer.reply.frames.back(), is_first);
}

void Shard::Fail(Message& reply, const absl::Status& why, Outbox& outbox) const {
  const bool is_push = reply.envelope.has_push_reply();
  if (is_push) {
    // Of an answer that was complete: what it says is not true any more.
    proto::PushReply bare;
    *bare.mutable_id() = reply.envelope.push_reply().id();
    *reply.envelope.mutable_push_reply() = std::move(bare);
  } else {
    reply.envelope.mutable_pull_reply()->clear_state();
  }
  reply.frames.clear();
  reply.envelope.clear_frame_checksums();
  SetStatus(Annotate(absl::StrCat(is_push ? "push " : "pull ", Where()), why), reply);
  if (absl::IsResourceExhausted(why)) {
    ++environment_.counters.refused;
    reply.envelope.mutable_status()->set_retry_after_ms(kRetryAfterMs);
  }
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
