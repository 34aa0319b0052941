// SPDX-License-Identifier: Apache-2.0
#include "worker/group.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/collective/collective_kind.h"
#include "common/collective/cost_model.h"
#include "common/tensor/codec.h"
#include "worker/collective/collective.h"
#include "worker/engine/worker_core.h"

namespace covey::worker {
namespace {

absl::Status CheckParts(std::span<const PartRange> parts, size_t elements, uint32_t size) {
  if (parts.size() != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("got ", parts.size(), " parts for ", size, " members; give one per member"));
  }
  for (const PartRange& part : parts) {
    if (part.first > elements || part.count > elements - part.first) {
      return absl::InvalidArgumentError(absl::StrCat("part of ", part.count, " elements from ",
                                                     part.first, " is outside the tensor of ",
                                                     elements, " elements"));
    }
  }
  return absl::OkStatus();
}

bool MayBeEncoded(const Collective& collective) {
  return collective.data.type() == ElementType::kFloat32 && collective.op == ReduceOp::kSum;
}

// INVALID_ARGUMENT: the collective computes or encodes what it cannot.
absl::Status CheckElements(const Collective& collective, const CollectiveOptions& options) {
  const ElementType type = collective.data.type();
  if (HasReduction(collective.kind) && type == ElementType::kByte) {
    return absl::InvalidArgumentError(
        absl::StrCat(CollectiveName(collective.kind),
                     " of bytes, which have no sum; pass float32, float64, int32 or int64"));
  }
  if (reinterpret_cast<uintptr_t>(collective.data.data()) % ElementBytes(type) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(CollectiveName(collective.kind), " of ", ElementTypeName(type),
                     " at an address that is no multiple of ", ElementBytes(type), "; copy it"));
  }
  if (options.format.value_or(WireFormat::kFloat32) != WireFormat::kFloat32 &&
      !MayBeEncoded(collective)) {
    return absl::InvalidArgumentError(
        absl::StrCat(CollectiveName(collective.kind), " of ", ElementTypeName(type),
                     " in the format ", WireFormatName(*options.format),
                     ", which is for sums and copies of float32; leave the format out"));
  }
  if (options.format && NeedsFeedback(*options.format)) {
    return absl::InvalidArgumentError(absl::StrCat(
        CollectiveName(collective.kind), " in the format ", WireFormatName(*options.format),
        ", which leaves out most elements, and only steps of a model send them later; "
        "use another format"));
  }
  if (options.input != nullptr && !HasReduction(collective.kind)) {
    return absl::InvalidArgumentError(
        absl::StrCat(CollectiveName(collective.kind),
                     " with an input of its own, which reductions alone have; put the values into "
                     "the tensor itself"));
  }
  const std::span<const uint8_t> data = collective.data.bytes();
  const auto* const input = static_cast<const uint8_t*>(options.input);
  const std::less<> is_before;
  if (input != nullptr && input != data.data() && is_before(input, data.data() + data.size()) &&
      is_before(data.data(), input + data.size())) {
    return absl::InvalidArgumentError(
        absl::StrCat(CollectiveName(collective.kind),
                     " with an input that overlaps the output; use the same memory for both, or "
                     "memory apart"));
  }
  return absl::OkStatus();
}

}  // namespace

GroupId Group::id() const { return place_->id; }
uint32_t Group::rank() const { return place_->rank; }
uint32_t Group::size() const { return place_->size; }

Handle Group::ReduceScatter(ElementSpan data, std::vector<PartRange> parts,
                            const CollectiveOptions& options) {
  return Start({.kind = CollectiveKind::kReduceScatter, .data = data, .parts = std::move(parts)},
               options);
}

Handle Group::AllGather(ElementSpan data, std::vector<PartRange> parts,
                        const CollectiveOptions& options) {
  return Start({.kind = CollectiveKind::kAllGather, .data = data, .parts = std::move(parts)},
               options);
}

Handle Group::AllReduce(ElementSpan data, const CollectiveOptions& options) {
  return Start({.kind = CollectiveKind::kAllReduce, .data = data}, options);
}

Handle Group::AllReduce(std::vector<std::span<float>> tensors, const CollectiveOptions& options) {
  if (options.input != nullptr) {
    return Handle({.status = absl::InvalidArgumentError(
                       "all-reduce of several tensors with an input of its own, which only one "
                       "tensor can have; make one call for each")});
  }
  size_t elements = 0;
  for (const std::span<float> tensor : tensors) elements += tensor.size();
  const auto fused = std::make_shared<std::vector<float>>();
  fused->reserve(elements);
  for (const std::span<float> tensor : tensors) {
    fused->insert(fused->end(), tensor.begin(), tensor.end());
  }
  Collective collective{.kind = CollectiveKind::kAllReduce, .data = *fused, .owner = fused};
  collective.arrived = [fused, tensors = std::move(tensors)](absl::Time, const CollectiveResult&,
                                                             Outbox&) {
    auto from = fused->begin();
    for (const std::span<float> tensor : tensors) {
      const auto end = from + static_cast<ptrdiff_t>(tensor.size());
      std::copy(from, end, tensor.begin());
      from = end;
    }
  };
  return Start(std::move(collective), options);
}

Handle Group::Broadcast(ElementSpan data, uint32_t root, const CollectiveOptions& options) {
  return Start({.kind = CollectiveKind::kBroadcast, .data = data, .root = root}, options);
}

Handle Group::Barrier() { return Start({.kind = CollectiveKind::kBarrier}, {}); }

Handle Group::Start(Collective collective, const CollectiveOptions& options) {
  if (collective.root >= size()) {
    return Handle(
        {.status = absl::InvalidArgumentError(absl::StrCat(
             "broadcast from rank ", collective.root, " of a group of ", size(), " members"))});
  }
  if (HasReduction(collective.kind)) collective.op = options.op;
  if (collective.parts.empty()) collective.parts = EvenParts(collective.data.size(), size());
  absl::Status fits = CheckElements(collective, options);
  if (fits.ok()) fits = CheckParts(collective.parts, collective.data.size(), size());
  if (!fits.ok()) return Handle({.status = fits});
  const std::span<uint8_t> data = collective.data.bytes();
  if (options.input != nullptr && options.input != data.data() && !data.empty()) {
    std::memcpy(data.data(), options.input, data.size());
  }
  core_.SetBack().IgnoreError();  // Else the next collective says it.
  collective.algorithm = options.algorithm;
  if (MayBeEncoded(collective)) {
    collective.format = options.format.value_or(core_.config().collective_wire);
  }
  collective.priority = options.priority;
  const Handle handle(core_.runner());
  collective.done = [handle](absl::Time, const CollectiveResult& result, Outbox&) {
    handle.Complete({.status = result.status});
  };
  const absl::Status posted =
      core_.PostBeforeWaiting([place = place_, patience = core_.config().cluster.operation_deadline,
                               collective = std::move(collective)](
                                  WorkerActor& actor, absl::Time now, Outbox& outbox) mutable {
        Communicator& group = actor.group();
        if (!place->IsIn(group)) {
          collective.done(now,
                          {.status = absl::FailedPreconditionError(absl::StrCat(
                               "the group has other members now, ", group.size(),
                               " of them; call Group::Refresh after a step that changed it"))},
                          outbox);
          return;
        }
        collective.id = group.NextPlain();
        collective.deadline = now + patience;
        group.Start(now, std::move(collective), outbox);
      });
  if (!posted.ok()) {
    handle.Complete({.status = absl::ResourceExhaustedError(
                         "too many collectives wait in this worker; wait for some of them first")});
  }
  return handle;
}

absl::StatusOr<Forecast> Group::PredictAllReduce(size_t elements) const {
  constexpr CollectiveKind kKind = CollectiveKind::kAllReduce;
  absl::StatusOr<Forecast> forecast =
      absl::UnavailableError("the members of the group have not met; see `covey status`");
  const size_t bytes = EncodedBytes(core_.config().collective_wire, elements);
  COVEY_RETURN_IF_ERROR(core_.Run([&](WorkerActor& actor, absl::Time, Outbox&) {
    Communicator& group = actor.group();
    if (!group.formed() || !group.ready()) return;
    const std::shared_ptr<const Plan> plan = group.PlanFor(kKind, bytes);
    const Prediction expected = Predict(*plan, kKind, bytes, group.paths(), group.link_costs());
    forecast =
        Forecast{.algorithm = plan->algorithm(), .duration = absl::Seconds(expected.seconds)};
  }));
  return forecast;
}

absl::Status Group::Refresh() {
  absl::Status status = absl::UnavailableError("this worker is in no group; see `covey status`");
  COVEY_RETURN_IF_ERROR(core_.Run([&](WorkerActor& actor, absl::Time, Outbox&) {
    if (!actor.group().formed()) return;
    place_ = GroupPlace::In(actor.group());
    status = absl::OkStatus();
  }));
  return status;
}

}  // namespace covey::worker
