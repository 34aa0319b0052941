// SPDX-License-Identifier: Apache-2.0

// How a Shard takes a push in, or not; the rest of it is in shard.cc.
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "common/tensor/kernels.h"
#include "common/tensor/wire_format_proto.h"
#include "server/shard/push_checks.h"
#include "server/shard/shard.h"

namespace covey::server {

absl::StatusOr<bool> Shard::Accept(absl::Time now, const Message& request, const PushKey& key,
                                   Outbox& outbox) {
  const proto::PushRequest& push = request.envelope.push_request();
  if (absl::Status status = CheckForm(request, content().element_count(),
                                      samples() + aggregator_.gate().samples_held());
      !status.ok()) {
    ++environment_.counters.malformed;
    return status;
  }
  COVEY_ASSIGN_OR_RETURN(const bool known, IsKnown(key));
  if (known && (IsQuery(request) || !Planted(PlantedBug::kApplyDuplicates))) return true;

  COVEY_RETURN_IF_ERROR(CheckSender(request, *view_));
  if (IsQuery(request)) {
    return absl::UnavailableError("it has not been received yet; push it with its gradient");
  }
  const ReceivedPush gathered{.key = key,
                              .group = GroupId(push.group()),
                              .step = Step(push.group() == 0 ? 0 : push.step()),
                              .samples = push.samples(),
                              .base_version = Version(push.base_version())};
  COVEY_RETURN_IF_ERROR(aggregator_.gate().Admit(gathered.group, gathered.step));
  COVEY_RETURN_IF_ERROR(CheckRoom(key.producer));
  if (contract().Discards(gathered.base_version, version())) {
    Discard(now, gathered, outbox);
    return false;
  }
  if (const absl::Status intact = CheckFrameChecksums(request); !intact.ok()) {
    ++environment_.counters.malformed;
    return absl::UnavailableError(absl::StrCat(
        "the gradient did not arrive as it was sent, nothing was applied, push it again: ",
        intact.message()));
  }
  const Buffer gradient = Decoded(push.format(), request.frames[0]);
  COVEY_RETURN_IF_ERROR(Screen(gradient, push));
  ledger_.Add(
      key, replica_.has_required_successor() ? AckLedger::Ack::kReceived : AckLedger::Ack::kEarly);
  const EncodedGradient encoded{.frame = request.frames[0],
                                .format = push.format(),
                                .checksum = request.envelope.frame_checksums(0)};
  if (correction_.compensates()) {
    aggregator_.Add(gathered, correction_.Compensate(gathered, gradient, Values()));
  } else {
    aggregator_.Add(gathered, gradient, encoded);
  }
  return false;
}

absl::StatusOr<bool> Shard::IsKnown(const PushKey& key) const {
  const absl::StatusOr<PushHistory::Finding> finding = content().push_history().Find(key);
  if (!finding.ok()) return Annotate(NameOf(key.producer, *view_), finding.status());
  if (finding->known) return true;
  const absl::StatusOr<bool> held = ledger_.Find(key);
  if (!held.ok()) return Annotate(NameOf(key.producer, *view_), held.status());
  return held;
}

absl::Status Shard::CheckRoom(const Producer& producer) const {
  if (replica_.IsFull()) {
    return absl::ResourceExhaustedError(
        absl::StrCat(replica_.SuccessorName(), " has not acknowledged ", replica_.kept_bytes(),
                     " bytes of updates yet; retry later"));
  }
  const PushHistory& history = content().push_history();
  if (history.Knows(producer) || ledger_.Knows(producer) ||
      history.size() + ledger_.producers() < kProducersPerShardMax ||
      history.FindOldest([this](const Producer& other) { return IsGone(other, *view_); })) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(
      absl::StrCat(history.size(), " producers push to this shard, and all of them live; use ",
                   "fewer clients, or let them form groups"));
}

Buffer Shard::Decoded(proto::WireFormat format, const Buffer& frame) {
  if (format == proto::WIRE_FLOAT32) return frame;
  Buffer gradient = environment_.spares.Take(bytes());
  Decode(WireFormatFromProto(format).value(), frame.bytes(), gradient.MutableAs<float>());
  // Lent again once the gradient has been applied.
  environment_.spares.Retire(gradient);
  return gradient;
}

absl::Status Shard::Screen(const Buffer& gradient, const proto::PushRequest& push) {
  if (!refuses_non_finite_) return absl::OkStatus();
  absl::Status status = CheckFinite(gradient.As<float>(), content().first_element(), push, *view_);
  if (!status.ok()) ++environment_.counters.non_finite;
  return status;
}

void Shard::Discard(absl::Time now, const ReceivedPush& push, Outbox& outbox) {
  ++environment_.counters.discarded;
  ShardRecord record;
  // The clock says how far a group has come; it does not pass what is held.
  const bool moves_clock = !aggregator_.gate().Holds(push.group);
  record.pushes.push_back({.key = push.key,
                           .group = moves_clock ? push.group : GroupId(),
                           .step = moves_clock ? push.step : Step(),
                           .discarded = true});
  aggregator_.Discard(push);
  MakeRoom(record);
  replica_.Append(now, std::move(record), {}, outbox);
}

}  // namespace covey::server
