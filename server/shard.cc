#include "server/shard.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/optimizer/kernels.h"

namespace covey::server {
namespace {

PushKey KeyOf(const proto::PushId& id) {
  return {.producer = {.kind = id.producer_kind() == proto::PushId::GROUP ? Producer::Kind::kGroup
                                                                          : Producer::Kind::kClient,
                       .id = id.producer()},
          .incarnation = id.producer_incarnation(),
          .sequence = id.sequence()};
}

PendingAnswer BeginAnswer(absl::Time now, const Message& request, uint32_t deadline_ms) {
  return {.node = request.from().node,
          .incarnation = request.incarnation(),
          .request_id = request.envelope.header().request_id(),
          .reply = MakeReply(request),
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
      contract_(rules.contract),
      refuses_non_finite_(rules.refuses_non_finite),
      environment_(environment),
      view_(std::move(view)),
      table_(std::move(table)),
      gathering_(rules.contract, environment.spares),
      last_update_(now) {}

void Shard::Push(absl::Time now, const Message& request, Outbox& outbox) {
  const proto::PushRequest& push = request.envelope.push_request();
  PendingAnswer answer = BeginAnswer(now, request, push.deadline_ms());
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
    answer.requirement = ReadRequirement::Of(push.read(), contract_);
    Answer(now, std::move(answer), outbox);
  } else {
    Send(now, answer, outbox);
  }
  if (new_version) ReleaseParked(now, outbox);
}

absl::StatusOr<bool> Shard::TakeIn(const Message& request, const PushKey& key) {
  const proto::PushRequest& push = request.envelope.push_request();
  if (absl::Status status = CheckForm(request); !status.ok()) {
    ++environment_.counters.malformed;
    return status;
  }
  absl::StatusOr<DedupWindow::Finding> finding = producers_.Find(key);
  if (!finding.ok()) return Annotate(NameOf(key.producer), finding.status());
  const bool known = finding->verdict == DedupWindow::Verdict::kDuplicate;
  if (known && environment_.sabotage != Sabotage::kNoDedup) return true;

  COVEY_RETURN_IF_ERROR(CheckSender(request));
  const GatheredPush gathered{.key = key,
                              .group = GroupId(push.group()),
                              .step = Step(push.group() == 0 ? 0 : push.step()),
                              .samples = push.samples(),
                              .base_version = Version(push.base_version())};
  COVEY_RETURN_IF_ERROR(gathering_.gate().Admit(gathered.group, gathered.step));
  if (refuses_non_finite_) {
    if (absl::Status status = CheckFinite(request); !status.ok()) {
      ++environment_.counters.non_finite;
      return status;
    }
  }
  if (!known) {
    COVEY_RETURN_IF_ERROR(
        producers_.Record(key, [this](const Producer& producer) { return IsGone(producer); }));
  }
  gathering_.Add(gathered, request.frames[0]);
  return false;
}

absl::Status Shard::CheckForm(const Message& request) const {
  const proto::PushRequest& push = request.envelope.push_request();
  const proto::PushId& id = push.id();
  const size_t shard_bytes = table_->element_count() * sizeof(float);
  if (request.frames.size() != 1 || request.frames[0].size() != shard_bytes) {
    size_t bytes = 0;
    for (const Buffer& frame : request.frames) bytes += frame.size();
    return absl::InvalidArgumentError(absl::StrCat(
        "the gradient has ", bytes, " bytes in ", request.frames.size(), " frames, the shard has ",
        shard_bytes, " bytes; push one frame of the shard's size"));
  }
  const uint64_t samples_so_far = table_->samples() + gathering_.gate().samples_held();
  if (push.samples() == 0 || push.samples() > kShardSamplesMax - samples_so_far) {
    return absl::InvalidArgumentError(
        absl::StrCat("the push stands for ", push.samples(), " samples after ", samples_so_far,
                     "; push at least 1, and at most ", kShardSamplesMax, " in all"));
  }
  const bool consistent = id.producer_kind() == proto::PushId::GROUP
                              ? push.group() != 0 && push.group() == id.producer() &&
                                    push.group_generation() == id.producer_incarnation() &&
                                    push.step() == id.sequence()
                              : id.producer_kind() == proto::PushId::CLIENT && push.group() == 0 &&
                                    id.producer() == request.from().node.value();
  if (id.sequence() == 0 || !consistent) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the push id (producer ", id.producer(), ", sequence ", id.sequence(),
        ") does not fit its sender: node ", request.from().node.value(), ", group ", push.group(),
        ", step ", push.step(), "; this is a bug of the pushing library"));
  }
  return absl::OkStatus();
}

absl::Status Shard::CheckSender(const Message& request) const {
  const proto::PushRequest& push = request.envelope.push_request();
  const Epoch epoch(request.envelope.header().epoch());
  const bool is_behind = view_->epoch() < epoch;
  const auto unknown = [&](const std::string& who) -> absl::Status {
    if (is_behind) {
      return absl::UnavailableError(absl::StrCat("view epoch ", view_->epoch().value(),
                                                 " is older than ", epoch.value(), " and lacks ",
                                                 who, ", retry"));
    }
    return absl::InvalidArgumentError(absl::StrCat(who, " is not in the view of epoch ",
                                                   view_->epoch().value(),
                                                   "; register with the scheduler first"));
  };
  if (push.group() == 0) {
    const proto::Node* node = view_->FindNode(request.from().node);
    if (node == nullptr) return unknown(absl::StrCat("node ", request.from().node.value()));
    if (node->state() == proto::Node::ALIVE) return absl::OkStatus();
    return absl::AbortedError(absl::StrCat(
        node->name(), " is ", node->state() == proto::Node::DEAD ? "declared dead" : "gone",
        " since epoch ", view_->epoch().value(), " or before; join the cluster anew"));
  }
  const proto::Group* group = view_->FindGroup(GroupId(push.group()));
  if (group == nullptr || (group->generation() < push.group_generation() && is_behind)) {
    return unknown(absl::StrCat("group ", push.group(), " generation ", push.group_generation()));
  }
  if (group->generation() != push.group_generation()) {
    return absl::AbortedError(absl::StrCat("group ", push.group(), " has generation ",
                                           group->generation(), ", the push has ",
                                           push.group_generation(), "; follow the newer view"));
  }
  if (group->state() == proto::Group::ACTIVE) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("group ", push.group(),
                                         group->state() == proto::Group::BROKEN
                                             ? absl::StrCat(" is broken: ", group->reason())
                                             : std::string(" has left the job")));
}

absl::Status Shard::CheckFinite(const Message& request) const {
  const std::span<const float> gradient = request.frames[0].As<float>();
  if (AllFinite(gradient)) return absl::OkStatus();
  const auto bad = std::find_if(gradient.begin(), gradient.end(),
                                [](float element) { return !std::isfinite(element); });
  const proto::PushId& id = request.envelope.push_request().id();
  return absl::InvalidArgumentError(absl::StrCat(
      NameOf(KeyOf(id).producer), " pushed ", *bad, " at element ", bad - gradient.begin(),
      " of the shard (element ",
      table_->first_element() + static_cast<uint64_t>(bad - gradient.begin()),
      " of the table), step ", id.sequence(), "; nothing was applied; look at the loss and the ",
      "learning rate of that producer"));
}

bool Shard::IsGone(const Producer& producer) const {
  if (producer.kind == Producer::Kind::kGroup) {
    const proto::Group* group = view_->FindGroup(GroupId(static_cast<uint32_t>(producer.id)));
    return group == nullptr || group->state() != proto::Group::ACTIVE;
  }
  const proto::Node* node = view_->FindNode(NodeId(producer.id));
  return node == nullptr || node->state() != proto::Node::ALIVE;
}

bool Shard::ApplyDue(absl::Time now) {
  const Version before = version();
  const GroupCensus groups{.live = view_->live_groups(),
                           .known = static_cast<size_t>(view_->proto().groups_size())};
  while (const auto update = gathering_.TakeDue(now, groups)) {
    // Length and samples were checked on arrival.
    COVEY_CHECK(table_->Apply(update->gradient_sum.elements(), update->samples).ok());
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
  PendingAnswer answer = BeginAnswer(now, request, pull.deadline_ms());
  proto::PullReply& reply = *answer.reply.envelope.mutable_pull_reply();
  reply.set_table(pull.table());
  reply.set_shard(pull.shard());
  answer.requirement = ReadRequirement::Of(pull.read(), contract_);
  Answer(now, std::move(answer), outbox);
}

void Shard::SetView(absl::Time now, std::shared_ptr<const ClusterView> view, Outbox& outbox) {
  view_ = std::move(view);
  ApplyDue(now);
  ReleaseParked(now, outbox);
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
          .live_groups = view_->live_groups(),
          .version = version(),
          .age = now - last_update_};
}

void Shard::Send(absl::Time now, PendingAnswer& answer, Outbox& outbox) {
  if (answer.push) {
    proto::PushReply& reply = *answer.reply.envelope.mutable_push_reply();
    const absl::StatusOr<DedupWindow::Finding> finding = producers_.Find(answer.push->key);
    const Version applied = finding.ok() ? finding->version : Version();
    const Version base = answer.push->base_version;
    reply.set_applied_version(applied.value());
    reply.set_durable(true);
    reply.set_duplicate(answer.push->duplicate);
    reply.set_has_values(answer.wants_values);
    if (base != Version() && applied > base) {
      reply.set_staleness(applied.value() - base.value() - 1);
    }
    Describe(now, *reply.mutable_state());
  } else {
    Describe(now, *answer.reply.envelope.mutable_pull_reply()->mutable_state());
  }
  if (answer.wants_values) answer.reply.frames.push_back(table_->Values());
  outbox.Send(std::move(answer.reply));
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

std::string Shard::NameOf(const Producer& producer) const {
  if (producer.kind == Producer::Kind::kGroup) return absl::StrCat("group ", producer.id);
  return view_->NameOf(NodeId(producer.id));
}

}  // namespace covey::server
