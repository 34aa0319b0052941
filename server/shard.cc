#include "server/shard.h"

#include <algorithm>
#include <utility>

#include "absl/container/btree_set.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "common/tensor/kernels.h"
#include "server/push_checks.h"

namespace covey::server {
namespace {

// Advice to who is refused because too much waits: about as long as a full window takes.
constexpr uint32_t kRetryAfterMs = 20;

PendingAnswer BeginAnswer(absl::Time now, const Message& request, const proto::ReadBound& bound,
                          uint32_t deadline_ms) {
  return {.node = request.from().node,
          .incarnation = request.incarnation(),
          .request_id = request.envelope.header().request_id(),
          .reply = MakeReply(request),
          .bound = bound,
          .deadline = now + std::min<absl::Duration>(absl::Milliseconds(deadline_ms), kBarrierMax)};
}

// The same code, and where it happened in front of the message.
absl::Status Annotate(absl::string_view where, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Shard>> Shard::Open(ShardId id,
                                                   std::shared_ptr<const ClusterView> view,
                                                   Replica& replica,
                                                   const Environment& environment) {
  const proto::Table* table = view->FindTable(id.table);
  const proto::Shard* shard = view->FindShard(id);
  COVEY_CHECK(table != nullptr && shard != nullptr && replica.content() != nullptr);
  COVEY_ASSIGN_OR_RETURN(const TableRules rules, RulesOf(*table, *shard));
  return absl::WrapUnique(new Shard(id, std::move(view), replica, environment, rules));
}

Shard::Shard(ShardId id, std::shared_ptr<const ClusterView> view, Replica& replica,
             const Environment& environment, const TableRules& rules)
    : id_(id),
      table_name_(view->FindTable(id.table)->spec().name()),
      refuses_non_finite_(rules.refuses_non_finite),
      environment_(environment),
      view_(std::move(view)),
      replica_(replica),
      gathering_(rules.contract, environment.spares),
      asynchrony_(rules.asynchrony, environment.spares),
      waited_for_(contract().WaitedFor(view_->live_groups())) {
  proto::ShardState state;
  content().clocks().Describe(version(), state);
  for (const proto::GroupClock& clock : state.clocks()) {
    gathering_.Resume(GroupId(clock.group()), Step(clock.step()));
  }
  if (content().index() > 0 && Planted(PlantedBug::kForgetDedupOnTakeover)) {
    replica_.content()->ForgetProducers();
  }
}

void Shard::Push(absl::Time now, const Message& request, Outbox& outbox) {
  const proto::PushRequest& push = request.envelope.push_request();
  PendingAnswer answer = BeginAnswer(now, request, push.read(), push.deadline_ms());
  *answer.reply.envelope.mutable_push_reply()->mutable_id() = push.id();
  const PushKey key = KeyOf(push.id());
  const absl::StatusOr<bool> duplicate = TakeIn(now, request, key, outbox);
  if (!duplicate.ok()) {
    Fail(answer.reply, duplicate.status(), outbox);
    return;
  }
  ++(*duplicate ? environment_.counters.duplicates : environment_.counters.pushes);
  const bool new_version = ApplyDue(now, outbox);
  answer.push = {.key = key, .base_version = Version(push.base_version()), .duplicate = *duplicate};
  answer.wants_values = push.read().wanted();
  if (answer.wants_values) {
    answer.requirement = ReadRequirement::Of(answer.bound, contract());
    Answer(now, std::move(answer), outbox);
  } else {
    Send(now, answer, outbox);
  }
  if (new_version) ReleaseParked(now, outbox);
  replica_.SetKeepsPromises(now, held_.pledged() == 0, outbox);
  FollowChain(now, outbox);
}

absl::StatusOr<bool> Shard::TakeIn(absl::Time now, const Message& request, const PushKey& key,
                                   Outbox& outbox) {
  const proto::PushRequest& push = request.envelope.push_request();
  if (absl::Status status = CheckForm(request, content().element_count(),
                                      samples() + gathering_.gate().samples_held());
      !status.ok()) {
    ++environment_.counters.malformed;
    return status;
  }
  COVEY_ASSIGN_OR_RETURN(const bool known, IsKnown(key));
  if (known && !Planted(PlantedBug::kApplyDuplicates)) return true;

  COVEY_RETURN_IF_ERROR(CheckSender(request, *view_));
  const GatheredPush gathered{.key = key,
                              .group = GroupId(push.group()),
                              .step = Step(push.group() == 0 ? 0 : push.step()),
                              .samples = push.samples(),
                              .base_version = Version(push.base_version())};
  COVEY_RETURN_IF_ERROR(gathering_.gate().Admit(gathered.group, gathered.step));
  COVEY_RETURN_IF_ERROR(CheckRoom(key.producer));
  if (contract().Discards(gathered.base_version, version())) {
    Discard(now, gathered, outbox);
    return false;
  }
  if (request.envelope.frame_checksums_size() != 0 && !CheckFrameChecksums(request).ok()) {
    ++environment_.counters.malformed;
    return absl::UnavailableError(
        "bits of the gradient have flipped on the way; nothing was applied, push it again");
  }
  const Buffer gradient = Decoded(push.format(), request.frames[0]);
  COVEY_RETURN_IF_ERROR(Screen(gradient, push));
  held_.Add(key, /*pledged=*/!replica_.has_company());
  EncodedGradient encoded{.frame = request.frames[0], .format = push.format(), .checksum = {}};
  if (request.envelope.frame_checksums_size() == 1) {
    encoded.checksum = request.envelope.frame_checksums(0);
  }
  if (asynchrony_.compensates()) {
    gathering_.Add(gathered, asynchrony_.Compensate(gathered, gradient, Values()));
  } else {
    gathering_.Add(gathered, gradient, encoded);
  }
  return false;
}

absl::StatusOr<bool> Shard::IsKnown(const PushKey& key) const {
  const absl::StatusOr<Producers::Finding> finding = content().producers().Find(key);
  if (!finding.ok()) return Annotate(NameOf(key.producer, *view_), finding.status());
  if (finding->known) return true;
  const absl::StatusOr<bool> held = held_.Find(key);
  if (!held.ok()) return Annotate(NameOf(key.producer, *view_), held.status());
  return held;
}

absl::Status Shard::CheckRoom(const Producer& producer) const {
  if (replica_.IsFull()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(replica_.SuccessorName(), " has not acknowledged ", replica_.kept_bytes(),
                     " bytes of updates yet; retry later"));
  }
  const Producers& producers = content().producers();
  if (producers.Knows(producer) || held_.Knows(producer) ||
      producers.size() + held_.producers() < kProducersPerShardMax ||
      producers.FindOldest([this](const Producer& other) { return IsGone(other, *view_); })) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(producers.size(), " producers push to this shard, and all of them live; use ",
                   "fewer clients, or let them form groups"));
}

Buffer Shard::Decoded(proto::WireFormat format, const Buffer& frame) {
  if (format == proto::WIRE_FLOAT32) return frame;
  Buffer gradient = environment_.spares.Take(bytes());
  Decode(static_cast<WireFormat>(format), frame.bytes(), gradient.MutableAs<float>());
  // Lent anew once the gradient has been applied.
  environment_.spares.Retire(gradient);
  return gradient;
}

absl::Status Shard::Screen(const Buffer& gradient, const proto::PushRequest& push) {
  if (!refuses_non_finite_) return absl::OkStatus();
  absl::Status status = CheckFinite(gradient.As<float>(), content().first_element(), push, *view_);
  if (!status.ok()) ++environment_.counters.non_finite;
  return status;
}

void Shard::Discard(absl::Time now, const GatheredPush& push, Outbox& outbox) {
  ++environment_.counters.discarded;
  ShardRecord record;
  // The clock says how far a group has come; it does not pass what is held.
  const bool counts = !gathering_.gate().Holds(push.group);
  record.pushes.push_back({.key = push.key,
                           .group = counts ? push.group : GroupId(),
                           .step = counts ? push.step : Step(),
                           .discarded = true});
  gathering_.Discard(push);
  MakeRoom(record);
  replica_.Append(now, std::move(record), {}, outbox);
}

bool Shard::ApplyDue(absl::Time now, Outbox& outbox) {
  const Version before = version();
  const GroupCensus groups{.live = waited_for_,
                           .known = static_cast<size_t>(view_->proto().groups_size())};
  while (auto update = gathering_.TakeDue(now, groups)) Apply(now, *update, outbox);
  return version() != before;
}

void Shard::Apply(absl::Time now, GatheredUpdate& update, Outbox& outbox) {
  ShardRecord record{
      .version = version().Next(),
      .pushes = {},
      .samples = update.samples,
      .adjustment = asynchrony_.BeginUpdate(update, version(), waited_for_.size(), contract()),
      .gradient = std::move(update.encoded),
      .digest = {}};
  for (const GatheredPush& push : update.pushes) {
    record.pushes.push_back({.key = push.key, .group = push.group, .step = push.step});
  }
  MakeRoom(record);
  replica_.Append(now, std::move(record), update.gradient_sum.elements(), outbox);
  SendReceipts(now, update);
}

void Shard::MakeRoom(ShardRecord& record) const {
  const Producers& producers = content().producers();
  if (producers.size() < kProducersPerShardMax) return;
  absl::btree_set<Producer> forgotten;
  for (size_t i = 0; i < record.pushes.size(); ++i) {
    if (producers.Knows(record.pushes[i].key.producer)) continue;
    const auto oldest = producers.FindOldest([&](const Producer& producer) {
      return !forgotten.contains(producer) && IsGone(producer, *view_);
    });
    if (!oldest) return;
    forgotten.insert(*oldest);
  }
  for (const Producer& producer : forgotten) {
    record.pushes.insert(record.pushes.begin(), {.key = {.producer = producer}});
  }
}

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

uint64_t Shard::durable() const {
  return Planted(PlantedBug::kAcknowledgeBeforeReplicate) ? content().index() : replica_.durable();
}

void Shard::FollowChain(absl::Time now, Outbox& outbox) {
  undurable_.TakeDurable(durable(),
                         [&](UndurableAnswer& answer) { Post(now, std::move(answer), outbox); });
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

void Shard::SetView(absl::Time now, std::shared_ptr<const ClusterView> view, Outbox& outbox) {
  view_ = std::move(view);
  FollowContract();
  waited_for_ = contract().WaitedFor(view_->live_groups());
  asynchrony_.Forget([this](const Producer& producer) { return IsGone(producer, *view_); });
  ApplyDue(now, outbox);
  ReleaseParked(now, outbox);
  replica_.SetKeepsPromises(now, held_.pledged() == 0, outbox);
  FollowChain(now, outbox);
}

void Shard::FollowContract() {
  const absl::StatusOr<Contract> newest = ContractInForce(*view_->FindTable(id_.table));
  // What this server does not know, or a scheduler would never ask for, changes nothing.
  if (!newest.ok() || *newest == contract() || !contract().CheckSwitchTo(*newest).ok()) return;
  gathering_.SwitchTo(*newest);
  parked_.ForEach([&](PendingAnswer& answer) {
    answer.requirement = ReadRequirement::Of(answer.bound, *newest);
  });
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

absl::Time Shard::NextWake() const {
  return std::min(
      {parked_.next_deadline(), undurable_.next_deadline(), gathering_.gate().NextDue()});
}

void Shard::Wake(absl::Time now, Outbox& outbox) {
  if (gathering_.gate().NextDue() <= now && ApplyDue(now, outbox)) ReleaseParked(now, outbox);
  replica_.SetKeepsPromises(now, held_.pledged() == 0, outbox);
  // What became fresh enough by now has been answered; what did not is late.
  parked_.Take([now](const PendingAnswer& answer) { return answer.deadline <= now; },
               [&](PendingAnswer& answer) {
                 Fail(answer.reply,
                      absl::DeadlineExceededError(
                          absl::StrCat("not as fresh as asked before the deadline: ",
                                       Missing(answer.requirement, FreshnessAt(now)),
                                       "; see `covey status` for who is behind, or allow more "
                                       "time")),
                      outbox);
               });
  FollowChain(now, outbox);
  undurable_.TakeLate(now, [&](UndurableAnswer& answer) {
    Fail(answer.reply,
         absl::DeadlineExceededError(absl::StrCat(
             "applied here, but not acknowledged before the deadline by ", replica_.SuccessorName(),
             ", next in the chain; ask again, it is lost or durable then")),
         outbox);
  });
}

size_t Shard::queued_bytes() const {
  return gathering_.held_bytes() + replica_.kept_bytes() + undurable_.bytes();
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
    if (!reply.durable()) held_.SetReceipt(key, answer.reply);
    reply.set_duplicate(answer.push->duplicate);
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

proto::TableAsynchrony Shard::ReportAsynchrony() const {
  proto::TableAsynchrony report = asynchrony_.Report();
  report.set_table(id_.table.value());
  report.set_updates(version().value());
  report.set_discarded(content().discarded());
  return report;
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
