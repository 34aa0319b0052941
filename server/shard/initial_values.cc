// SPDX-License-Identifier: Apache-2.0
#include "server/shard/initial_values.h"

#include <cstddef>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"
#include "common/net/frame_checksum.h"
#include "common/optimizer/kernels.h"
#include "server/shard/frame_inspection.h"
#include "server/shard/push_checks.h"

namespace covey::server {

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
  const absl::Status form =
      CheckForm(request, shard.content().element_count(), shard.content().samples());
  if (!form.ok()) {
    ++shard.counters.malformed;
    return form;
  }
  if (shard.version() != Version()) {
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
  const std::span<const float> values = request.frames[0].As<float>();
  bool all_finite = true;
  const auto inspect = [&all_finite](const Buffer& frame) {
    const FrameInspection found = InspectFrame(frame.As<float>());
    all_finite = found.all_finite;
    return found.checksum;
  };
  if (const absl::Status intact = CheckFrameChecksums(request, inspect); !intact.ok()) {
    return absl::UnavailableError(
        absl::StrCat("the initial values did not arrive as they were sent, push them again: ",
                     intact.message()));
  }
  if (!all_finite) {
    const size_t bad = FirstNonFinite(values).value();
    return absl::InvalidArgumentError(
        absl::StrCat("the initial value of element ", shard.content().first_element() + bad,
                     " of the table is ", values[bad], "; give finite values"));
  }
  return InitialValuesRecord({.frame = request.frames[0],
                              .format = proto::WIRE_FLOAT32,
                              .checksum = request.envelope.frame_checksums(0)});
}

}  // namespace covey::server
