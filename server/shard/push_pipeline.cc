// SPDX-License-Identifier: Apache-2.0
#include "server/shard/push_pipeline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/planted_bug.h"
#include "common/base/small_limits.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "common/vectors/vector_proto.h"
#include "server/shard/frame_inspection.h"
#include "server/shard/push_checks.h"
#include "server/sparse/eviction_plan.h"

namespace covey::server {

namespace {

// Of producers per shard: more than a simulation has at a time.
constexpr size_t kSmallProducers = 8;

size_t ProducersMax() { return LimitInForce(kProducersPerShardMax, kSmallProducers); }

// Plants bugs: a push that is known is taken again. `waits`: for an update.
bool IsTakenAgain(bool waits) {
  return Planted(PlantedBug::kApplyDuplicates) || (waits && Planted(PlantedBug::kBufferDuplicates));
}

}  // namespace

absl::StatusOr<bool> PushPipeline::Accept(absl::Time now, const Message& request,
                                          const PushKey& key, RequestKeys& keys, Outbox& outbox) {
  const proto::PushRequest& push = request.envelope.push_request();
  if (absl::Status status = CheckForm(
          request,
          {.shape = shard_.content().shape(),
           .samples_so_far = shard_.content().samples() + aggregator_.gate().samples_held()});
      !status.ok()) {
    ++shard_.counters.malformed;
    return status;
  }
  COVEY_ASSIGN_OR_RETURN(const bool known, IsKnown(key));
  if (known && (IsQuery(request) || !IsTakenAgain(shard_.ledger.AckOf(key).has_value()))) {
    return true;
  }

  COVEY_RETURN_IF_ERROR(CheckSender(request, *shard_.view));
  if (IsQuery(request)) {
    return absl::UnavailableError("it has not been received yet; push it with its gradient");
  }
  ReceivedPush received{.key = key,
                        .group = GroupId(push.group()),
                        .step = Step(push.group() == 0 ? 0 : push.step()),
                        .samples = push.samples(),
                        .base_version = Version(push.base_version()),
                        .rate_factor = push.has_rate_factor() ? push.rate_factor() : 1,
                        .view = Epoch(request.envelope.header().epoch())};
  COVEY_RETURN_IF_ERROR(CheckJump(received.group, received.step));
  COVEY_RETURN_IF_ERROR(CheckEarlierSteps(now, received.group, received.step));
  COVEY_RETURN_IF_ERROR(aggregator_.gate().Admit(received.group, received.step));
  COVEY_RETURN_IF_ERROR(MakeRoom(now, key.producer, outbox));
  if (!push.functions().empty()) {
    COVEY_ASSIGN_OR_RETURN(std::vector<VectorFunction> functions, TakeFunctions(push));
    ApplyFunctions(now, key, std::move(functions), outbox);
    return false;
  }
  if (contract().Discards(received.base_version, shard_.version())) {
    Discard(now, received, outbox);
    return false;
  }
  COVEY_ASSIGN_OR_RETURN(Taken taken, TakeGradient(request, keys));
  PassGate(taken.gradient.spans(), received);
  shard_.ledger.Add(key, shard_.replica.has_required_successor() ? AckLedger::Ack::kReceived
                                                                 : AckLedger::Ack::kEarly);
  if (shard_.correction.compensates()) {
    Buffer& elements = taken.gradient.elements;
    elements = shard_.correction.Compensate(received, elements, shard_.content().Values());
    taken.encoded = {};
  }
  aggregator_.Add(received, taken.gradient, taken.encoded);
  return false;
}

absl::StatusOr<PushPipeline::Taken> PushPipeline::TakeGradient(const Message& request,
                                                               RequestKeys& keys) {
  const proto::PushRequest& push = request.envelope.push_request();
  const GradientShape shape = shard_.content().shape();
  const bool brings_keys = request.frames.size() == 2;
  bool is_screened = false;
  const auto inspect = [&](const Buffer& frame) {
    // RequestKeys checks it.
    if (brings_keys && &frame == &request.frames[0]) return request.envelope.frame_checksums(0);
    // Other formats are screened as decoded, and factors as summed up.
    if (push.format() != proto::WIRE_FLOAT32 || push.has_outer_product()) {
      return FrameChecksum(frame);
    }
    const FrameInspection found = InspectFrame(frame.As<float>());
    is_screened = found.all_finite;
    return found.checksum;
  };
  if (const absl::Status intact = CheckFrameChecksums(request, inspect); !intact.ok()) {
    ++shard_.counters.malformed;
    return absl::UnavailableError(absl::StrCat(
        "the gradient did not arrive as it was sent, nothing was applied, push it again: ",
        intact.message()));
  }
  Taken taken;
  taken.encoded =
      EncodedGradientOf(request, push.format(), push.keys(), shape, push.outer_product().terms());
  if (const SparseShard* const rows = shard_.content().sparse()) {
    const auto listed = keys.Take(*rows);
    if (!listed.ok()) {
      shard_.counters.malformed += !keys.are_unknown();
      return listed.status();
    }
    taken.encoded.keys = (*listed)->encoded;
    taken.gradient.keys = (*listed)->keys;
    taken.gradient.places = (*listed)->places;
    COVEY_RETURN_IF_ERROR(shard_.replica.CheckRoomForRows((*listed)->spans()));
  }
  taken.gradient.elements = DecodedElements(taken.encoded, shape, shard_.spares);
  if (!is_screened) COVEY_RETURN_IF_ERROR(Screen(taken.gradient.spans(), push));
  return taken;
}

absl::StatusOr<bool> PushPipeline::IsKnown(const PushKey& key) const {
  const absl::StatusOr<PushHistory::Finding> finding = shard_.content().push_history().Find(key);
  if (!finding.ok()) return Annotate(NameOf(key.producer, *shard_.view), finding.status());
  if (finding->known) return true;
  const absl::StatusOr<bool> held = shard_.ledger.Find(key);
  if (!held.ok()) return Annotate(NameOf(key.producer, *shard_.view), held.status());
  return held;
}

absl::Status PushPipeline::CheckJump(GroupId group, Step step) {
  const Step last = aggregator_.gate().last_received(group);
  if (group == GroupId() || step.value() <= last.value() + kPushSequenceJumpMax) {
    return absl::OkStatus();
  }
  ++shard_.counters.malformed;
  return absl::InvalidArgumentError(absl::StrCat("group ", group.value(), " pushes step ",
                                                 step.value(), " after step ", last.value(),
                                                 "; go on with the next step"));
}

absl::Status PushPipeline::CheckEarlierSteps(absl::Time now, GroupId group, Step step) {
  if (!taken_over_.contains(group)) return absl::OkStatus();
  if (!first_push_) first_push_ = now;
  const Step last = aggregator_.gate().last_received(group);
  if (step.value() <= last.value() + 1 || now >= *first_push_ + kEarlierStepWait) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("group ", group.value(), " pushes step ", step.value(),
                                             " to a new head, which has its steps to ",
                                             last.value(),
                                             "; a member may still repeat those between, retry"));
}

bool PushPipeline::IsFull() const {
  const PushHistory& history = shard_.content().push_history();
  // Most producers whose pushes are held have pushed before.
  if (history.size() + shard_.ledger.producers() < ProducersMax()) return false;
  const size_t first_ones = shard_.ledger.CountProducers(
      [&](const Producer& producer) { return !history.Knows(producer); });
  return history.size() + first_ones >= ProducersMax();
}

bool PushPipeline::HasRoomFor(const Producer& producer) const {
  return shard_.content().push_history().Knows(producer) || shard_.ledger.Knows(producer) ||
         !IsFull();
}

absl::Status PushPipeline::MakeRoom(absl::Time now, const Producer& producer, Outbox& outbox) {
  COVEY_RETURN_IF_ERROR(CheckReplicasHaveRoom(shard_));
  if (HasRoomFor(producer)) return absl::OkStatus();
  // Some may have gone in a view under which there was room.
  ForgetGone(now, outbox);
  if (HasRoomFor(producer)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(ProducersMax(), " producers push to this shard; use fewer clients, or let ",
                   "them form groups"));
}

absl::Status PushPipeline::Screen(const Gradient& gradient, const proto::PushRequest& push) {
  if (!refuses_non_finite_) return absl::OkStatus();
  absl::Status status = CheckFinite(gradient, shard_.content(), push, *shard_.view);
  if (!status.ok()) ++shard_.counters.non_finite;
  return status;
}

void PushPipeline::PassGate(const Gradient& gradient, ReceivedPush& push) {
  const NormGate::Verdict verdict =
      norm_gate_.Judge(gradient.elements, push.samples, push.key.producer,
                       shard_.content().push_history(), *shard_.view);
  push.norm = verdict.norm;
  push.is_beyond_gate = verdict.is_beyond;
  if (verdict.is_applied) return;
  ++shard_.counters.discarded;
  push.is_discarded = true;
  push.samples = 0;
}

void PushPipeline::Discard(absl::Time now, const ReceivedPush& push, Outbox& outbox) {
  ++shard_.counters.discarded;
  ShardRecord record;
  // The clock says how far a group has come; it does not pass what is held.
  const bool moves_clock = !aggregator_.gate().Holds(push.group);
  record.pushes.push_back({.key = push.key,
                           .group = moves_clock ? push.group : GroupId(),
                           .step = moves_clock ? push.step : Step(),
                           .discarded = true,
                           .samples = push.samples,
                           .base_version = push.base_version});
  aggregator_.Discard(push);
  shard_.replica.Append(now, std::move(record), {}, outbox);
}

absl::StatusOr<std::vector<VectorFunction>> PushPipeline::TakeFunctions(
    const proto::PushRequest& push) const {
  const Contract::Kind kind = contract().kind;
  absl::StatusOr<std::vector<VectorFunction>> functions = FunctionsFromProto(push.functions());
  absl::Status fits = functions.status();
  if (fits.ok()) fits = CheckFunctions(*functions, shard_.content().vectors());
  if (fits.ok() && kind != Contract::Kind::kAsync && kind != Contract::Kind::kSsp) {
    fits = absl::InvalidArgumentError(
        absl::StrCat("functions are applied on arrival, and under ", ContractName(contract()),
                     " pushes wait for each other; change the contract to async or ssp"));
  }
  if (fits.ok()) return functions;
  ++shard_.counters.malformed;
  return fits;
}

void PushPipeline::ApplyFunctions(absl::Time now, const PushKey& key,
                                  std::vector<VectorFunction> functions, Outbox& outbox) {
  ShardRecord record;
  record.version = shard_.version().Next();
  record.asynchrony = shard_.correction.estimates();
  record.functions = std::move(functions);
  record.pushes.push_back({.key = key});
  shard_.replica.Append(now, std::move(record), {}, outbox);
}

std::optional<AggregatedUpdate> PushPipeline::ApplyNext(absl::Time now, Outbox& outbox) {
  const GroupCensus groups{.live = shard_.waited_for,
                           .initial = shard_.view->initial_groups(),
                           .epoch = shard_.view->epoch()};
  std::optional<AggregatedUpdate> update = aggregator_.TakeDue(now, groups);
  if (update) Apply(now, *update, outbox);
  return update;
}

void PushPipeline::Apply(absl::Time now, AggregatedUpdate& update, Outbox& outbox) {
  ShardRecord record;
  if (update.samples > 0) {
    record.version = shard_.version().Next();
    record.samples = update.samples;
    record.adjustment = shard_.correction.BeginUpdate(update, shard_.version(),
                                                      shard_.waited_for.size(), contract());
    record.adjustment.rate_factor *= update.rate_factor();
    record.gradient = std::move(update.encoded);
    if (const SparseShard* const rows = shard_.content().sparse()) {
      record.evictions = PlanEvictions(*rows, update.gradient_sum.gradient().keys);
    }
    record.asynchrony = shard_.correction.estimates();
  }
  for (const ReceivedPush& push : update.pushes) {
    record.pushes.push_back({.key = push.key,
                             .group = push.group,
                             .step = push.step,
                             .discarded = push.is_discarded,
                             .norm = push.norm,
                             .is_beyond_gate = push.is_beyond_gate,
                             .samples = push.samples,
                             .base_version = push.base_version});
  }
  shard_.replica.Append(now, std::move(record), update.gradient_sum.gradient(), outbox);
}

void PushPipeline::ForgetGone(absl::Time now, Outbox& outbox) {
  const PushHistory& history = shard_.content().push_history();
  const bool is_full = IsFull();
  const bool takes_all = Planted(PlantedBug::kForgetLiveProducers);
  absl::btree_map<Producer, absl::Time> gone_since;
  ShardRecord record;
  for (const Producer& producer : history.Forgettable([this, takes_all](const Producer& each) {
         return takes_all || IsGone(each, *shard_.view);
       })) {
    const auto known = gone_since_.find(producer);
    const absl::Time since = known == gone_since_.end() ? now : known->second;
    gone_since.emplace(producer, since);
    const bool is_group = producer.kind == Producer::Kind::kGroup;
    const bool is_due =
        is_full || now - since >= (is_group ? kForgetGroupAfter : kForgetClientAfter);
    if (is_due && !shard_.ledger.Knows(producer)) {
      record.pushes.push_back({.key = {.producer = producer}});
    }
  }
  gone_since_ = std::move(gone_since);
  if (record.pushes.empty() || !CheckReplicasHaveRoom(shard_).ok()) return;
  shard_.replica.Append(now, std::move(record), {}, outbox);
}

}  // namespace covey::server
