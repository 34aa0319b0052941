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
  if (known && (IsQuestion(request) || !Planted(PlantedBug::kApplyDuplicates))) return true;

  COVEY_RETURN_IF_ERROR(CheckSender(request, *view_));
  if (IsQuestion(request)) {
    return absl::UnavailableError("it has not been received yet; push it with its gradient");
  }
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
  if (const absl::Status intact = CheckFrameChecksums(request); !intact.ok()) {
    ++environment_.counters.malformed;
    return absl::UnavailableError(absl::StrCat(
        "the gradient did not arrive as it was sent, nothing was applied, push it again: ",
        intact.message()));
  }
  const Buffer gradient = Decoded(push.format(), request.frames[0]);
  COVEY_RETURN_IF_ERROR(Screen(gradient, push));
  held_.Add(key, /*pledged=*/!replica_.has_company());
  const EncodedGradient encoded{.frame = request.frames[0],
                                .format = push.format(),
                                .checksum = request.envelope.frame_checksums(0)};
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
  Decode(WireFormatFromProto(format).value(), frame.bytes(), gradient.MutableAs<float>());
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

}  // namespace covey::server
