#include "worker/group_machine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/net/message.h"
#include "worker/collective/reduce_kernels.h"

namespace covey::worker {
namespace {

// How soon to look again whether the transport has let frames go.
constexpr absl::Duration kReleasePoll = absl::Microseconds(200);
// The last slices of a member that left in order may still be on their way.
constexpr absl::Duration kDepartedGrace = absl::Seconds(2);

size_t BytesOf(const Message& message) {
  return message.frames.empty() ? 0 : message.frames[0].size();
}

}  // namespace

struct GroupMachine::Active {
  Active(uint64_t number, Collective collective, const RingSchedule& schedule)
      : number(number), collective(std::move(collective)), schedule(schedule) {}

  // Elements of a part as the schedule counts them.
  PartRange RangeOf(uint32_t part) const {
    switch (collective.kind) {
      case CollectiveKind::kBroadcast:
        return {.first = 0, .count = collective.data.size()};
      case CollectiveKind::kBarrier:
        return {};
      default:
        return collective.parts[part];
    }
  }
  // Messages that carry a part; none when it is empty, one for a barrier's token.
  size_t SlicesOf(uint32_t part, size_t slice_elements) const {
    if (collective.kind == CollectiveKind::kBarrier) return 1;
    return (RangeOf(part).count + slice_elements - 1) / slice_elements;
  }
  proto::GroupSlice::Kind SliceKind(uint32_t hop) const {
    if (collective.kind == CollectiveKind::kBarrier) return proto::GroupSlice::KIND_TOKEN;
    return schedule.Reduces(hop) ? proto::GroupSlice::KIND_REDUCE : proto::GroupSlice::KIND_GATHER;
  }
  bool arrived() const { return !collective.held && slices_missing == 0; }

  const uint64_t number;
  Collective collective;
  const RingSchedule schedule;
  std::vector<size_t> slices_received;  // per hop
  size_t slices_missing = 0;            // over all hops
  size_t frames_out = 0;                // queued or on the wire
  uint64_t samples = 0;                 // of all members, once the own part is complete
  bool told_arrived = false;
};

GroupMachine::GroupMachine(size_t slice_bytes)
    : slice_elements_(slice_bytes / sizeof(float)), view_(ClusterView::Empty()) {
  COVEY_CHECK(slice_elements_ > 0 && slice_bytes % sizeof(float) == 0);
}

GroupMachine::~GroupMachine() = default;

Address GroupMachine::AddressOf(uint32_t rank) const { return {members_[rank % size_], 0}; }

std::string GroupMachine::NameOf(uint32_t rank) const {
  return view_->NameOf(members_[rank % size_]);
}

void GroupMachine::SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
                           Outbox& outbox) {
  self_ = self;
  view_ = std::move(view);
  if (!failure_.ok()) return;
  if (!formed()) {
    const proto::Group* group = view_->GroupOf(self_);
    if (group != nullptr && group->state() == proto::Group::ACTIVE) Form(now, *group, outbox);
    return;
  }
  const proto::Group* group = view_->FindGroup(id_);
  if (group == nullptr || group->generation() != generation_) {
    Fail(now,
         absl::UnavailableError(absl::StrCat("group ", id_.value(), " of generation ", generation_,
                                             " was dissolved; join again")),
         outbox);
    return;
  }
  if (group->state() == proto::Group::BROKEN) {
    Fail(now,
         absl::UnavailableError(absl::StrCat("group ", id_.value(), " is broken: ", group->reason(),
                                             "; start the run again")),
         outbox);
    return;
  }
  for (uint32_t rank = 0; rank < size_; ++rank) {
    const proto::Node* member = view_->FindNode(members_[rank]);
    if (member != nullptr && member->state() == proto::Node::LEFT) {
      for (auto& [number, active] : active_) {
        active->collective.deadline = std::min(active->collective.deadline, now + kDepartedGrace);
      }
    }
  }
  if (size_ > 1) {
    const std::string endpoint = view_->EndpointOf(AddressOf(rank_ + 1));
    if (endpoint != next_endpoint_) outbox.Route(AddressOf(rank_ + 1), endpoint);
    next_endpoint_ = endpoint;
  }
  Advance(now, outbox);
}

void GroupMachine::Form(absl::Time now, const proto::Group& group, Outbox& outbox) {
  id_ = GroupId(group.id());
  generation_ = group.generation();
  for (const uint64_t node : group.members()) members_.push_back(NodeId(node));
  size_ = static_cast<uint32_t>(members_.size());
  rank_ =
      static_cast<uint32_t>(std::find(members_.begin(), members_.end(), self_) - members_.begin());
  COVEY_CHECK(rank_ < size_);  // GroupOf(self) found it.
  if (size_ > 1) {
    next_endpoint_ = view_->EndpointOf(AddressOf(rank_ + 1));
    outbox.Route(AddressOf(rank_ + 1), next_endpoint_);
  }
  early_bytes_ = 0;
  early_messages_ = 0;
  for (const Message& message : std::exchange(before_forming_, {})) Receive(now, message, outbox);
}

uint64_t GroupMachine::Start(absl::Time now, Collective collective, Outbox& outbox) {
  COVEY_CHECK(formed());
  COVEY_CHECK(collective.kind == CollectiveKind::kBroadcast ||
              collective.kind == CollectiveKind::kBarrier || collective.parts.size() == size_);
  for (const PartRange& part : collective.parts) {
    COVEY_CHECK(part.first <= collective.data.size() &&
                part.count <= collective.data.size() - part.first);
  }
  const uint64_t number = ++last_started_;
  const RingSchedule schedule(
      {.kind = collective.kind, .rank = rank_, .size = size_, .root = collective.root});
  auto& active =
      *active_.emplace(number, std::make_unique<Active>(number, std::move(collective), schedule))
           .first->second;
  changed_.push_back(number);
  if (failure_.ok()) {
    active.slices_received.resize(schedule.hops());
    for (uint32_t hop = 0; hop < schedule.hops(); ++hop) {
      const auto part = schedule.ReceivePart(hop);
      if (part) active.slices_missing += active.SlicesOf(*part, slice_elements_);
    }
    if (size_ == 1) active.samples = active.collective.samples;
    if (!active.collective.held) SendOwnPart(active);
    const auto early = early_.find(number);
    if (early != early_.end()) {
      const std::deque<Message> messages = std::move(early->second);
      early_.erase(early);
      for (const Message& message : messages) {
        early_bytes_ -= BytesOf(message);
        --early_messages_;
        if (failure_.ok()) Apply(now, active, message, outbox);
      }
    }
  }
  Advance(now, outbox);
  return number;
}

void GroupMachine::Contribute(absl::Time now, uint64_t number, Outbox& outbox) {
  const auto found = active_.find(number);
  if (found == active_.end() || !failure_.ok()) return;
  Active& active = *found->second;
  COVEY_CHECK(active.collective.held);
  active.collective.held = false;
  SendOwnPart(active);
  changed_.push_back(number);
  Advance(now, outbox);
}

void GroupMachine::SendOwnPart(Active& active) {
  const auto part = active.schedule.SendPart(0);
  if (!part) return;
  const PartRange range = active.RangeOf(*part);
  for (size_t slice = 0; slice < active.SlicesOf(*part, slice_elements_); ++slice) {
    const size_t offset = slice * slice_elements_;
    const size_t count = std::min(slice_elements_, range.count - offset);
    QueueSlice(active, {.hop = 0, .offset = offset, .samples = active.collective.samples},
               active.collective.data.subspan(range.first + offset, count));
  }
}

void GroupMachine::QueueSlice(Active& active, const SlicePlace& place,
                              std::span<const float> elements) {
  Message message;
  message.set_to(AddressOf(rank_ + 1));
  proto::GroupSlice& slice = *message.envelope.mutable_group_slice();
  slice.set_group(id_.value());
  slice.set_generation(generation_);
  slice.set_collective(active.number);
  slice.set_hop(place.hop);
  slice.set_offset(place.offset);
  slice.set_from_rank(rank_);
  slice.set_kind(active.SliceKind(place.hop));
  if (slice.kind() == proto::GroupSlice::KIND_REDUCE) slice.set_samples(place.samples);
  if (slice.kind() != proto::GroupSlice::KIND_TOKEN) {
    message.frames.push_back(Buffer::Wrap(elements.data(), elements.size_bytes(), {}));
  }
  ++active.frames_out;
  sender_.Queue(active.number, std::move(message));
}

bool GroupMachine::IsMember(const Message& message, uint32_t rank) const {
  const proto::Node* node = view_->FindNode(members_[rank % size_]);
  return message.from() == AddressOf(rank) && node != nullptr &&
         Incarnation(node->incarnation()) == message.incarnation();
}

bool GroupMachine::Receive(absl::Time now, const Message& message, Outbox& outbox) {
  switch (message.envelope.body_case()) {
    case proto::Envelope::kGroupSlice:
    case proto::Envelope::kGroupAbort:
      break;
    default:
      return false;
  }
  if (!failure_.ok()) return true;
  if (!formed()) {
    // The sender may be a stranger, who must not fail anything.
    if (HasRoomForEarly(message)) KeepEarly(before_forming_, message);
    return true;
  }
  if (message.envelope.has_group_slice()) {
    ReceiveSlice(now, message, outbox);
  } else {
    ReceiveAbort(now, message, outbox);
  }
  Advance(now, outbox);
  return true;
}

void GroupMachine::ReceiveSlice(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::GroupSlice& slice = message.envelope.group_slice();
  if (size_ == 1 || slice.group() != id_.value() || slice.generation() != generation_ ||
      !IsMember(message, rank_ + size_ - 1)) {
    return;
  }
  if (slice.collective() > last_started_) {
    if (HasRoomForEarly(message)) {
      KeepEarly(early_[slice.collective()], message);
      return;
    }
    Abort(now,
          absl::ResourceExhaustedError(absl::StrCat(
              NameOf(rank_ + size_ - 1), " is ahead of ", NameOf(rank_), " by more than ",
              kGroupEarlyBytesMax >> 20, " MiB or ", kGroupEarlySlicesMax,
              " slices; balance the members' batches, or use more members")),
          outbox);
    return;
  }
  const auto found = active_.find(slice.collective());
  if (found != active_.end()) Apply(now, *found->second, message, outbox);
}

void GroupMachine::ReceiveAbort(absl::Time now, const Message& message, Outbox& outbox) {
  const proto::GroupAbort& abort = message.envelope.group_abort();
  if (abort.group() != id_.value() || abort.generation() != generation_) return;
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (rank == rank_ || !IsMember(message, rank)) continue;
    Fail(now, absl::UnavailableError(absl::StrCat(NameOf(rank), " gave up: ", abort.reason())),
         outbox);
    return;
  }
}

bool GroupMachine::HasRoomForEarly(const Message& message) const {
  return early_bytes_ + BytesOf(message) <= kGroupEarlyBytesMax &&
         early_messages_ < kGroupEarlySlicesMax;
}

void GroupMachine::KeepEarly(std::deque<Message>& queue, const Message& message) {
  early_bytes_ += BytesOf(message);
  ++early_messages_;
  queue.push_back(message);
}

void GroupMachine::Apply(absl::Time now, Active& active, const Message& message, Outbox& outbox) {
  const proto::GroupSlice& slice = message.envelope.group_slice();
  const uint32_t hop = slice.hop();
  const auto part = active.schedule.ReceivePart(hop);
  const PartRange range = part ? active.RangeOf(*part) : PartRange{};
  const size_t slices = part ? active.SlicesOf(*part, slice_elements_) : 0;
  const size_t expected =
      part ? active.slices_received[hop] * slice_elements_ : 0;  // offset of the next slice
  if (part && slice.offset() < expected) return;                 // It has been here before.
  const size_t count = std::min(slice_elements_, range.count - std::min(range.count, expected));
  const bool fits = part && slice.kind() == active.SliceKind(hop) &&
                    active.slices_received[hop] < slices && slice.offset() <= range.count;
  if (fits && slice.offset() > expected) {
    Abort(now,
          absl::UnavailableError(absl::StrCat(Describe(active), ": slices from ",
                                              NameOf(rank_ + size_ - 1), " to ", NameOf(rank_),
                                              " were lost with a connection; start the run again")),
          outbox);
    return;
  }
  if (!fits || BytesOf(message) != count * sizeof(float)) {
    Abort(now,
          absl::InvalidArgumentError(
              absl::StrCat(Describe(active), ": ", NameOf(rank_ + size_ - 1), " sent ",
                           BytesOf(message), " bytes at element ", slice.offset(), " of hop ", hop,
                           ", which does not fit what ", NameOf(rank_),
                           " started; all members must start the same collectives with the same "
                           "sizes in the same order")),
          outbox);
    return;
  }
  const std::span<float> mine = active.collective.data.subspan(range.first + slice.offset(), count);
  uint64_t samples = 0;
  if (slice.kind() == proto::GroupSlice::KIND_REDUCE) {
    AddInto(mine, message.frames[0].As<float>());
    samples = slice.samples() + active.collective.samples;
    if (hop + 2 == size_) active.samples = samples;
  } else if (slice.kind() == proto::GroupSlice::KIND_GATHER) {
    std::memcpy(mine.data(), message.frames[0].data(), mine.size_bytes());
  }
  ++active.slices_received[hop];
  --active.slices_missing;
  if (active.schedule.SendPart(hop + 1)) {
    QueueSlice(active, {.hop = hop + 1, .offset = slice.offset(), .samples = samples}, mine);
  }
  changed_.push_back(active.number);
}

void GroupMachine::Abort(absl::Time now, const absl::Status& status, Outbox& outbox) {
  if (!formed() || !failure_.ok()) return;
  Fail(now, status, outbox);
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    outbox.Route(AddressOf(rank), view_->EndpointOf(AddressOf(rank)));
    Message message;
    message.set_to(AddressOf(rank));
    proto::GroupAbort& abort = *message.envelope.mutable_group_abort();
    abort.set_group(id_.value());
    abort.set_generation(generation_);
    const absl::string_view reason = status.message().substr(0, kStatusMessageBytesMax);
    abort.set_reason(std::string(reason));
    outbox.Send(std::move(message));
  }
}

void GroupMachine::Fail(absl::Time now, absl::Status status, Outbox& outbox) {
  if (!failure_.ok()) return;
  failure_ = std::move(status);
  sender_.CancelQueued([this](uint64_t number) { Released(number); });
  // With the connection go the frames that wait in it for a peer that may never take them.
  if (sender_.in_flight()) outbox.Route(AddressOf(rank_ + 1), "");
  early_.clear();
  early_bytes_ = 0;
  early_messages_ = 0;
  for (const auto& [number, active] : active_) changed_.push_back(number);
  Advance(now, outbox);
}

void GroupMachine::Advance(absl::Time now, Outbox& outbox) {
  sender_.Advance(outbox, [this](uint64_t number) { Released(number); });
  look_again_ = sender_.in_flight() ? now + kReleasePoll : absl::InfiniteFuture();
  RunCallbacks(now, outbox);
}

void GroupMachine::Released(uint64_t number) {
  // The collective is still there: it waits for this frame.
  --active_.at(number)->frames_out;
  changed_.push_back(number);
}

void GroupMachine::RunCallbacks(absl::Time now, Outbox& outbox) {
  // A callback may start collectives and so come back here; what it finds is consistent.
  while (!changed_.empty()) {
    const auto found = active_.find(changed_.front());
    changed_.pop_front();
    if (found == active_.end()) continue;
    Active& active = *found->second;
    const bool failed = !failure_.ok();
    if (!failed && active.arrived() && !active.told_arrived) {
      active.told_arrived = true;
      changed_.push_back(active.number);
      const Collective::Callback arrived = std::move(active.collective.arrived);
      if (arrived) arrived(now, {.status = absl::OkStatus(), .samples = active.samples}, outbox);
      continue;
    }
    if (active.frames_out > 0 || !(failed || active.told_arrived)) continue;
    const std::unique_ptr<Active> over = std::move(found->second);
    active_.erase(found);
    const absl::Status status = over->told_arrived ? absl::OkStatus() : failure_;
    if (over->collective.done) {
      over->collective.done(now, {.status = status, .samples = over->samples}, outbox);
    }
  }
}

void GroupMachine::Wake(absl::Time now, Outbox& outbox) {
  if (failure_.ok()) {
    for (const auto& [number, active] : active_) {
      if (now < active->collective.deadline) continue;
      Abort(now, DeadlineStatus(*active), outbox);
      return;
    }
  }
  Advance(now, outbox);
}

absl::Time GroupMachine::NextWake() const {
  absl::Time next = look_again_;
  if (!failure_.ok()) return next;
  for (const auto& [number, active] : active_) next = std::min(next, active->collective.deadline);
  return next;
}

std::string GroupMachine::Describe(const Active& active) const {
  return absl::StrCat(CollectiveName(active.collective.kind), " ", active.number,
                      active.collective.name.empty() ? "" : " of ", active.collective.name,
                      " in group ", id_.value());
}

absl::Status GroupMachine::DeadlineStatus(const Active& active) const {
  std::string waits_for;
  if (active.slices_missing > 0) {
    uint32_t hop = 0;
    for (;; ++hop) {
      const auto part = active.schedule.ReceivePart(hop);
      if (part && active.slices_received[hop] < active.SlicesOf(*part, slice_elements_)) break;
    }
    const proto::Node* previous = view_->FindNode(members_[(rank_ + size_ - 1) % size_]);
    const bool left = previous != nullptr && previous->state() == proto::Node::LEFT;
    waits_for = absl::StrCat("nothing from ", NameOf(rank_ + size_ - 1),
                             left ? ", which has left," : "", " for hop ", hop);
  } else if (active.collective.held) {
    waits_for = absl::StrCat("the own part of ", NameOf(rank_), " was not ready");
  } else {
    waits_for = absl::StrCat(NameOf(rank_ + 1), " did not take what was sent to it");
  }
  return absl::DeadlineExceededError(absl::StrCat(Describe(active), ": ", waits_for,
                                                  " before the deadline; see `covey status`, or "
                                                  "allow more time"));
}

}  // namespace covey::worker
