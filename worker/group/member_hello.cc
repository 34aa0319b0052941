// SPDX-License-Identifier: Apache-2.0
#include "worker/group/member_hello.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/buffer.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/net/frame_checksum.h"
#include "worker/group/link_prober.h"

namespace covey::worker {
namespace {

void Write(const MemberState& state, proto::MemberState& to) {
  to.set_finished_step(state.finished.value());
  to.set_interrupted(state.interrupted);
  to.set_known_places(state.known_places);
  for (const LinkSample& sample : state.round_trips) {
    proto::LinkRoundTrip& trip = *to.add_round_trips();
    trip.set_level(static_cast<uint32_t>(sample.level));
    trip.set_bytes(static_cast<uint32_t>(sample.bytes));
    trip.set_seconds(static_cast<float>(sample.round_trip_seconds));
    if (sample.messages > 1) trip.set_messages(sample.messages);
  }
  if (state.progress.norm) {
    to.mutable_progress()->set_norm_step(state.progress.norm->step.value());
    to.mutable_progress()->set_norm(state.progress.norm->norm);
  }
  for (const BucketProgress& bucket : state.progress.buckets) {
    proto::BucketProgress& told = *to.mutable_progress()->add_buckets();
    told.set_finished_step(bucket.finished.value());
    told.set_pulls(bucket.pulls);
    told.set_waits_for_pull(bucket.waits_for_pull);
    if (bucket.learned) told.set_learned_step(bucket.learned->value());
  }
}

void Write(const MemberHello& hello, proto::MemberHello& to) {
  to.set_rank(hello.rank);
  if (const auto* distances = std::get_if<MemberDistances>(&hello.said)) {
    to.mutable_distances()->mutable_seconds()->Add(distances->begin(), distances->end());
  } else {
    Write(std::get<MemberState>(hello.said), *to.mutable_state());
  }
}

absl::Status BeyondLimit(absl::string_view what, uint64_t number) {
  return absl::InvalidArgumentError(absl::StrCat("a hello with ", what, " ", number));
}

bool IsDuration(float seconds) { return std::isfinite(seconds) && seconds >= 0; }

absl::StatusOr<MemberDistances> Read(const proto::MemberDistances& from, uint32_t group_size) {
  if (static_cast<uint32_t>(from.seconds_size()) != group_size) {
    return BeyondLimit("distances to members:", static_cast<uint64_t>(from.seconds_size()));
  }
  if (!std::all_of(from.seconds().begin(), from.seconds().end(), IsDuration)) {
    return absl::InvalidArgumentError("a hello with a distance that is none");
  }
  return MemberDistances(from.seconds().begin(), from.seconds().end());
}

absl::StatusOr<LinkSample> Read(const proto::LinkRoundTrip& from) {
  if (from.level() >= kLevels) return BeyondLimit("level", from.level());
  constexpr auto& kSizes = LinkProber::kProbeSizes;
  if (std::find(std::begin(kSizes), std::end(kSizes), from.bytes()) == std::end(kSizes)) {
    return BeyondLimit("a probe of bytes:", from.bytes());
  }
  if (!IsDuration(from.seconds())) {
    return absl::InvalidArgumentError("a hello with a round trip that is none");
  }
  if (from.messages() > LinkProber::kBurst) return BeyondLimit("messages:", from.messages());
  return LinkSample{.level = static_cast<Level>(from.level()),
                    .bytes = from.bytes(),
                    .messages = std::max(1u, from.messages()),
                    .round_trip_seconds = from.seconds()};
}

absl::StatusOr<Step> ReadStep(uint64_t step) {
  if (step >= kGroupStepsMax) return BeyondLimit("step", step);
  return Step(step);
}

absl::StatusOr<BucketProgress> Read(const proto::BucketProgress& from) {
  BucketProgress bucket{.pulls = from.pulls(), .waits_for_pull = from.waits_for_pull()};
  COVEY_ASSIGN_OR_RETURN(bucket.finished, ReadStep(from.finished_step()));
  if (from.pulls() >= kGroupStepsMax) return BeyondLimit("pulls:", from.pulls());
  if (from.has_learned_step()) {
    COVEY_ASSIGN_OR_RETURN(bucket.learned, ReadStep(from.learned_step()));
  }
  return bucket;
}

absl::StatusOr<MemberState> Read(const proto::MemberState& from) {
  MemberState state{.interrupted = from.interrupted(), .known_places = from.known_places()};
  COVEY_ASSIGN_OR_RETURN(state.finished, ReadStep(from.finished_step()));
  const auto trips = static_cast<size_t>(from.round_trips_size());
  // One of each size, and the burst.
  if (trips > kLevels * (std::size(LinkProber::kProbeSizes) + 1)) {
    return BeyondLimit("round trips:", trips);
  }
  for (const proto::LinkRoundTrip& trip : from.round_trips()) {
    COVEY_ASSIGN_OR_RETURN(const LinkSample sample, Read(trip));
    state.round_trips.push_back(sample);
  }
  const auto buckets = static_cast<size_t>(from.progress().buckets_size());
  if (buckets > kTablesMax) return BeyondLimit("buckets:", buckets);
  for (const proto::BucketProgress& told : from.progress().buckets()) {
    COVEY_ASSIGN_OR_RETURN(BucketProgress bucket, Read(told));
    state.progress.buckets.push_back(std::move(bucket));
  }
  if (from.progress().has_norm_step()) {
    GradientNorm& norm = state.progress.norm.emplace();
    COVEY_ASSIGN_OR_RETURN(norm.step, ReadStep(from.progress().norm_step()));
    norm.norm = from.progress().norm();
    if (norm.norm < 0) return absl::InvalidArgumentError("a norm that is none");
  }
  return state;
}

absl::StatusOr<MemberHello> Read(const proto::MemberHello& from, uint32_t group_size) {
  if (from.rank() >= group_size) return BeyondLimit("rank", from.rank());
  MemberHello hello{.rank = from.rank()};
  switch (from.said_case()) {
    case proto::MemberHello::kDistances: {
      COVEY_ASSIGN_OR_RETURN(hello.said, Read(from.distances(), group_size));
      return hello;
    }
    case proto::MemberHello::kState: {
      COVEY_ASSIGN_OR_RETURN(hello.said, Read(from.state()));
      return hello;
    }
    case proto::MemberHello::SAID_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("a hello that says nothing");
}

}  // namespace

size_t EncodedBytesMax(const MemberHello& hello) {
  constexpr size_t kHead = 96;
  constexpr size_t kTrip = 24;
  if (const auto* distances = std::get_if<MemberDistances>(&hello.said)) {
    return kHead + distances->size() * sizeof(float);
  }
  const auto& state = std::get<MemberState>(hello.said);
  const size_t bytes = kHead + kTrip * state.round_trips.size();
  return bytes + kBucketProgressBytesMax * state.progress.buckets.size();
}

void WriteHellos(std::span<const MemberHello* const> hellos, Message& message) {
  proto::MemberHellos words;
  for (const MemberHello* hello : hellos) Write(*hello, *words.add_members());
  Buffer frame = Buffer::Allocate(words.ByteSizeLong());
  COVEY_CHECK(frame.size() <= kGroupHelloBytesMax);
  words.SerializeWithCachedSizesToArray(frame.MutableData());
  message.frames.push_back(std::move(frame));
  SetFrameChecksums(message);
}

absl::StatusOr<std::vector<MemberHello>> ReadHellos(const Message& message, uint32_t group_size) {
  if (message.frames.size() != 1) return BeyondLimit("frames:", message.frames.size());
  const Buffer& frame = message.frames[0];
  if (frame.size() > kGroupHelloBytesMax) return BeyondLimit("bytes:", frame.size());
  COVEY_RETURN_IF_ERROR(CheckFrameChecksums(message));
  proto::MemberHellos words;
  if (!words.ParseFromArray(frame.data(), static_cast<int>(frame.size()))) {
    return absl::InvalidArgumentError("a hello that is none");
  }
  if (static_cast<uint32_t>(words.members_size()) > group_size) {
    return BeyondLimit("members:", static_cast<uint64_t>(words.members_size()));
  }
  std::vector<MemberHello> hellos;
  for (const proto::MemberHello& word : words.members()) {
    COVEY_ASSIGN_OR_RETURN(MemberHello hello, Read(word, group_size));
    hellos.push_back(std::move(hello));
  }
  return hellos;
}

}  // namespace covey::worker
