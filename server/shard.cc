#include "server/shard.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/tensor/kernels.h"
#include "server/push_checks.h"

namespace covey::server {
namespace {

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

absl::StatusOr<std::unique_ptr<Shard>> Shard::Open(absl::Time now, ShardId id,
                                                   std::shared_ptr<const ClusterView> view,
                                                   const Environment& environment) {
  const proto::Table* table = view->FindTable(id.table);
  const proto::Shard* shard = view->FindShard(id);
  COVEY_CHECK(table != nullptr && shard != nullptr);
  COVEY_ASSIGN_OR_RETURN(const TableRules rules, RulesOf(*table, *shard));
  absl::StatusOr<std::unique_ptr<DenseShard>> values =
      DenseShard::Create(rules.shard, environment.spares);
  if (!values.ok()) {
    return Annotate(absl::StrCat("table=", table->spec().name()), values.status());
  }
  return absl::WrapUnique(
      new Shard(now, id, std::move(view), environment, rules, *std::move(values)));
}

Shard::Shard(absl::Time now, ShardId id, std::shared_ptr<const ClusterView> view,
             const Environment& environment, const TableRules& rules,
             std::unique_ptr<DenseShard> table)
    : id_(id),
      table_name_(view->FindTable(id.table)->spec().name()),
      generation_(view->FindShard(id)->generation()),
      refuses_non_finite_(rules.refuses_non_finite),
      environment_(environment),
      view_(std::move(view)),
      table_(std::move(table)),
      gathering_(rules.contract, environment.spares),
      asynchrony_(rules.asynchrony, environment.spares),
      waited_for_(contract().WaitedFor(view_->live_groups())),
      last_update_(now) {}

void Shard::Push(absl::Time now, const Message& request, Outbox& outbox) {
  const proto::PushRequest& push = request.envelope.push_request();
  PendingAnswer answer = BeginAnswer(now, request, push.read(), push.deadline_ms());
  *answer.reply.envelope.mutable_push_reply()->mutable_id() = push.id();
  const PushKey key = KeyOf(push.id());
  const absl::StatusOr<bool> duplicate = TakeIn(request, key);
  if (!duplicate.ok()) {
    Fail(answer, duplicate.status(), outbox);
    return;
  }
  ++(*duplicate ? environment_.counters.duplicates : environment_.counters.pushes);
  const bool new_version = ApplyDue(now);
  answer.push = {.key = key, .base_version = Version(push.base_version()), .duplicate = *duplicate};
  answer.wants_values = push.read().wanted();
  if (answer.wants_values) {
    answer.requirement = ReadRequirement::Of(answer.bound, contract());
    Answer(now, std::move(answer), outbox);
  } else {
    Send(now, answer, outbox);
  }
  if (new_version) ReleaseParked(now, outbox);
}

absl::StatusOr<bool> Shard::TakeIn(const Message& request, const PushKey& key) {
  const proto::PushRequest& push = request.envelope.push_request();
  if (absl::Status status = CheckForm(request, table_->element_count(),
                                      table_->samples() + gathering_.gate().samples_held());
      !status.ok()) {
    ++environment_.counters.malformed;
    return status;
  }
  const absl::StatusOr<Producers::Finding> finding = producers_.Find(key);
  if (!finding.ok()) return Annotate(NameOf(key.producer, *view_), finding.status());
  if (finding->known && environment_.sabotage != Sabotage::kNoDedup) return true;

  COVEY_RETURN_IF_ERROR(CheckSender(request, *view_));
  const GatheredPush gathered{.key = key,
                              .group = GroupId(push.group()),
                              .step = Step(push.group() == 0 ? 0 : push.step()),
                              .samples = push.samples(),
                              .base_version = Version(push.base_version())};
  COVEY_RETURN_IF_ERROR(gathering_.gate().Admit(gathered.group, gathered.step));
  const bool discarded = contract().Discards(gathered.base_version, version());
  Buffer gradient;
  if (!discarded) {
    gradient = Decoded(push.format(), request.frames[0]);
    if (absl::Status status = Screen(gradient, push); !status.ok()) return status;
  }
  if (!finding->known) {
    COVEY_RETURN_IF_ERROR(producers_.Record(
        key, [this](const Producer& producer) { return IsGone(producer, *view_); }));
  }
  if (discarded) {
    Discard(gathered);
  } else {
    gathering_.Add(gathered, asynchrony_.compensates()
                                 ? asynchrony_.Compensate(gathered, gradient, table_->Values())
                                 : gradient);
  }
  return false;
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
  absl::Status status = CheckFinite(gradient.As<float>(), table_->first_element(), push, *view_);
  if (!status.ok()) ++environment_.counters.non_finite;
  return status;
}

void Shard::Discard(const GatheredPush& push) {
  ++environment_.counters.discarded;
  ++discarded_;
  producers_.SetDiscarded(push.key);
  // The clock says how far a group has come; it does not pass what is held.
  if (push.group != GroupId() && !gathering_.gate().Holds(push.group)) {
    clocks_.Advance(push.group, push.step);
  }
  gathering_.Discard(push);
}

bool Shard::ApplyDue(absl::Time now) {
  const Version before = version();
  const GroupCensus groups{.live = waited_for_,
                           .known = static_cast<size_t>(view_->proto().groups_size())};
  while (const auto update = gathering_.TakeDue(now, groups)) {
    const UpdateAdjustment adjustment =
        asynchrony_.BeginUpdate(*update, version(), groups.live.size(), contract());
    // Length and samples were checked on arrival.
    COVEY_CHECK(table_->Apply(update->gradient_sum.elements(), update->samples, adjustment).ok());
    last_update_ = now;
    for (const GatheredPush& push : update->pushes) {
      producers_.SetVersion(push.key, version());
      if (push.group != GroupId()) clocks_.Advance(push.group, push.step);
    }
  }
  return version() != before;
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
  ApplyDue(now);
  ReleaseParked(now, outbox);
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

void Shard::Close(const absl::Status& why, Outbox& outbox) {
  parked_.Take([](const PendingAnswer&) { return true; },
               [&](PendingAnswer& answer) { Fail(answer, why, outbox); });
}

absl::Time Shard::NextWake() const {
  return std::min(parked_.next_deadline(), gathering_.gate().NextDue());
}

void Shard::Wake(absl::Time now, Outbox& outbox) {
  if (gathering_.gate().NextDue() <= now && ApplyDue(now)) ReleaseParked(now, outbox);
  // What became fresh enough by now has been answered; what did not is late.
  parked_.Take([now](const PendingAnswer& answer) { return answer.deadline <= now; },
               [&](PendingAnswer& answer) {
                 Fail(answer,
                      absl::DeadlineExceededError(
                          absl::StrCat("not as fresh as asked before the deadline: ",
                                       Missing(answer.requirement, FreshnessAt(now)),
                                       "; see `covey status` for who is behind, or allow more "
                                       "time")),
                      outbox);
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
    Fail(answer,
         absl::DeadlineExceededError(
             absl::StrCat("not as fresh as asked, and the request does not wait: ",
                          Missing(answer.requirement, FreshnessAt(now)))),
         outbox);
  } else if (!parked_.Park(answer)) {
    Fail(answer,
         absl::ResourceExhaustedError(absl::StrCat(
             parked_.size(), " answers wait for this shard already; retry later (now: ",
             Missing(answer.requirement, FreshnessAt(now)), ")")),
         outbox);
  }
}

bool Shard::MayAnswer(absl::Time now, const ReadRequirement& requirement) const {
  return environment_.sabotage == Sabotage::kNoStalenessGate ||
         IsMet(requirement, FreshnessAt(now));
}

Freshness Shard::FreshnessAt(absl::Time now) const {
  return {.clocks = clocks_,
          .live_groups = waited_for_,
          .version = version(),
          .age = now - last_update_};
}

void Shard::Send(absl::Time now, PendingAnswer& answer, Outbox& outbox) {
  if (answer.push) {
    proto::PushReply& reply = *answer.reply.envelope.mutable_push_reply();
    const absl::StatusOr<Producers::Finding> finding = producers_.Find(answer.push->key);
    const Version applied = finding.ok() ? finding->version : Version();
    const Version base = answer.push->base_version;
    reply.set_applied_version(applied.value());
    reply.set_durable(true);
    reply.set_duplicate(answer.push->duplicate);
    reply.set_discarded(finding.ok() && finding->discarded);
    reply.set_has_values(answer.wants_values);
    if (base != Version() && applied > base) {
      reply.set_staleness(applied.value() - base.value() - 1);
    }
    Describe(now, *reply.mutable_state());
  } else {
    Describe(now, *answer.reply.envelope.mutable_pull_reply()->mutable_state());
  }
  if (answer.wants_values) {
    answer.reply.frames.push_back(table_->Values());
    if (asynchrony_.compensates()) NoteSent(answer);
  }
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
  report.set_updates(table_->version());
  report.set_discarded(discarded_);
  return report;
}

void Shard::Fail(PendingAnswer& answer, const absl::Status& why, Outbox& outbox) const {
  const bool is_push = answer.reply.envelope.has_push_reply();
  SetStatus(Annotate(absl::StrCat(is_push ? "push " : "pull ", Where()), why), answer.reply);
  outbox.Send(std::move(answer.reply));
}

void Shard::Describe(absl::Time now, proto::ShardState& state) const {
  clocks_.Describe(version(), state);
  state.set_age_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(now - last_update_)));
  state.set_samples(table_->samples());
  state.set_generation(generation_);
}

std::string Shard::Where() const {
  return absl::StrCat("table=", table_name_, " shard=", id_.index.value());
}

}  // namespace covey::server
