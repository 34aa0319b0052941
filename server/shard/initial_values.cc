// SPDX-License-Identifier: Apache-2.0
#include "server/shard/initial_values.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/frame_checksum.h"
#include "common/optimizer/kernels.h"
#include "server/shard/frame_inspection.h"
#include "server/shard/push_checks.h"

namespace covey::server {
namespace {

// The first frame holds the values, and each of the others a slot.
std::string NameOfFrame(size_t frame) {
  return frame == 0 ? "the initial value" : absl::StrCat("optimizer slot ", frame);
}

absl::Status NotFinite(const Message& request, size_t frame, uint64_t first_element) {
  const std::span<const float> array = request.frames[frame].As<float>();
  const size_t bad = FirstNonFinite(array).value();
  return absl::InvalidArgumentError(absl::StrCat(NameOfFrame(frame), " of element ",
                                                 first_element + bad, " of the table is ",
                                                 array[bad], "; give finite values"));
}

absl::Status CheckArrays(const Message& request, const ShardContent& content) {
  const proto::PushRequest& push = request.envelope.push_request();
  PushForm form{.shape = content.shape(), .samples_so_far = content.samples()};
  if (push.has_initial_state()) {
    form.frames += content.slots();
    const proto::InitialState& state = push.initial_state();
    if (!IsQuery(request) && request.frames.size() != form.frames) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the table's optimizer keeps ", content.slots(), " slots, and the initial values came ",
          "with ", static_cast<int64_t>(request.frames.size()) - 1,
          "; give the state of an equal optimizer, or values alone"));
    }
    if (state.updates() > kInitialUpdatesMax || state.samples() > kInitialSamplesMax) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the initial values stand for ", state.updates(), " updates and ", state.samples(),
          " samples; give at most ", kInitialUpdatesMax, " and ", kInitialSamplesMax));
    }
  }
  return CheckForm(request, form);
}

}  // namespace

bool GivesInitialValues(const Message& request) {
  return request.envelope.has_push_request() &&
         request.envelope.push_request().initialization_epoch() != 0;
}

absl::Status CheckInitialization(const Message& request, const ClusterView& view,
                                 const proto::Table& table) {
  const uint64_t epoch = request.envelope.push_request().initialization_epoch();
  if (!table.has_initialization()) {
    if (epoch == 0) return absl::OkStatus();
    return absl::AbortedError("the table has its initial values; pull them");
  }
  const proto::Initialization& initialization = table.initialization();
  const NodeId giver(initialization.node());
  if (epoch == 0) {
    if (Planted(PlantedBug::kServeUninitialized)) return absl::OkStatus();
    return absl::UnavailableError(absl::StrCat(
        "the table waits for its initial values, ",
        giver == NodeId()
            ? std::string("which no program gives yet; call initialize_tables "
                          "(ParameterClient::InitializeTables, Client.initialize in Python)")
            : absl::StrCat("which ", view.NameOf(giver), " gives since epoch ",
                           initialization.epoch(), "; see whether that process runs")));
  }
  if (giver != NodeId() && epoch == initialization.epoch() && request.from().node == giver) {
    return absl::OkStatus();
  }
  if (epoch > view.epoch().value()) {
    return absl::UnavailableError(
        absl::StrCat("view epoch ", view.epoch().value(), " is older than ", epoch, ", retry"));
  }
  if (Planted(PlantedBug::kTakeValuesOfAnyNode)) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      "its initial values are given by ", giver == NodeId() ? "nobody" : view.NameOf(giver),
      " since epoch ", initialization.epoch(), ", not by ", view.NameOf(request.from().node),
      " since epoch ", epoch, "; ask the scheduler again who gives them"));
}

absl::Status InitialValues::Take(absl::Time now, const Message& request, ServedShard& shard,
                                 Outbox& outbox) {
  const Epoch epoch(request.envelope.push_request().initialization_epoch());
  if (const absl::Status form = CheckArrays(request, shard.content()); !form.ok()) {
    ++shard.counters.malformed;
    return form;
  }
  if (shard.content().has_pushes()) {
    return absl::AbortedError("updates have been applied; the table has its initial values");
  }
  if (epoch == taken_) {
    ++shard.counters.duplicates;
    return absl::OkStatus();
  }
  if (IsQuery(request)) {
    return absl::UnavailableError("the initial values have not been received; push them again");
  }
  COVEY_RETURN_IF_ERROR(CheckReplicasHaveRoom(shard));
  COVEY_ASSIGN_OR_RETURN(ShardRecord record, RecordOf(request, shard));
  const Buffer values = record.gradient.frame;
  shard.replica.Append(now, std::move(record), values.As<float>(), outbox);
  taken_ = epoch;
  return absl::OkStatus();
}

absl::StatusOr<ShardRecord> InitialValues::RecordOf(const Message& request,
                                                    const ServedShard& shard) {
  const proto::PushRequest& push = request.envelope.push_request();
  if (push.format() != proto::WIRE_FLOAT32) {
    return absl::InvalidArgumentError("initial values travel as float32; push them so");
  }
  size_t inspected = 0;
  std::optional<size_t> not_finite;  // frame
  const auto inspect = [&](const Buffer& frame) {
    const FrameInspection found = InspectFrame(frame.As<float>());
    if (!found.all_finite && !not_finite) not_finite = inspected;
    ++inspected;
    return found.checksum;
  };
  if (const absl::Status intact = CheckFrameChecksums(request, inspect); !intact.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the initial values did not arrive as they were sent, push them again: ",
                     intact.message()));
  }
  if (not_finite) return NotFinite(request, *not_finite, shard.content().first_element());
  const auto array_of = [&request](size_t frame) -> EncodedGradient {
    return {.frame = request.frames[frame],
            .format = proto::WIRE_FLOAT32,
            .checksum = request.envelope.frame_checksums(static_cast<int>(frame))};
  };
  if (!push.has_initial_state()) return InitialValuesRecord(array_of(0));
  InitialState state{.slots = {},
                     .updates = push.initial_state().updates(),
                     .samples = push.initial_state().samples()};
  for (size_t i = 1; i < request.frames.size(); ++i) state.slots.push_back(array_of(i));
  return InitialValuesRecord(array_of(0), std::move(state));
}

}  // namespace covey::server
