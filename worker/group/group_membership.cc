// How a group changes its members, and who leaves it: the part of GroupMachine that follows the view.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug.h"
#include "common/net/message.h"
#include "worker/group/group_machine.h"

namespace covey::worker {
namespace {

// The last slices of a member that left in order may still be on their way.
constexpr absl::Duration kDepartedGrace = absl::Seconds(2);

}  // namespace

void GroupMachine::SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
                           Outbox& outbox) {
  self_ = self;
  view_ = std::move(view);
  if (!failure_.ok()) return;
  if (formed()) {
    FollowGroup(now, outbox);
  } else {
    const proto::Group* group = view_->GroupOf(self_);
    if (group != nullptr && group->state() == proto::Group::ACTIVE) Form(now, *group, outbox);
  }
  // What was kept for a generation to come may be known now to be of one that never comes.
  if (!failure_.ok()) return;
  for (const Message& message : before_forming_.Take({})) Receive(now, message, outbox);
}

void GroupMachine::FollowGroup(absl::Time now, Outbox& outbox) {
  if (superseded_) {
    if (change_pending()) Leave(now, ChangeOver(now, outbox), outbox);
    return;
  }
  if (MustLeaveAtOnce()) return Recover(now, outbox);
  const proto::Group* group = view_->FindGroup(id_);
  const bool same = group != nullptr && group->generation() == generation_;
  if (same && group->state() == proto::Group::BROKEN) {
    Fail(now,
         absl::UnavailableError(absl::StrCat("group ", id_.value(), " is broken: ", group->reason(),
                                             "; start the run again")),
         outbox);
    return;
  }
  for (uint32_t rank = 0; rank < size_; ++rank) {
    const proto::Node* member = view_->FindNode(members_[rank]);
    if (member == nullptr || member->state() != proto::Node::LEFT) continue;
    for (auto& [number, run] : runs_) {
      run->collective().deadline = std::min(run->collective().deadline, now + kDepartedGrace);
    }
    for (Collective& waiting : waiting_) {
      waiting.deadline = std::min(waiting.deadline, now + kDepartedGrace);
    }
    if (agreeing_) exchange_by_ = std::min(exchange_by_, now + kDepartedGrace);
  }
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (routes_.contains(members_[rank])) Reach(rank, outbox);
  }
  Advance(now, outbox);
}

const proto::Node* GroupMachine::Lost(std::optional<proto::Node::State> state) const {
  if (!change_pending()) return nullptr;
  for (const NodeId member : members_) {
    const proto::Node* node = view_->FindNode(member);
    if (node == nullptr || node->state() == proto::Node::ALIVE) continue;
    if (!state || node->state() == *state) return node;
  }
  return nullptr;
}

bool GroupMachine::MustLeaveAtOnce() const {
  const proto::Group* group = view_->FindGroup(id_);
  if (group != nullptr && group->recovery_generation() > generation_) return true;
  if (!change_pending()) return false;
  // Nobody cuts the steps of a group that has ended, when one of its members has gone.
  const bool ended = group == nullptr || group->state() != proto::Group::ACTIVE;
  if (ended && Lost() != nullptr) return true;
  // Of a member that has left in order the last slices may still be on their way, unless the
  // members have not even met.
  if (Lost(ready_ ? std::optional(proto::Node::DEAD) : std::nullopt) != nullptr) return true;
  return overtaken_ && collectives() > 0;
}

void GroupMachine::Recover(absl::Time now, Outbox& outbox) {
  const proto::Node* lost = Lost();
  interruption_ = absl::StrCat(
      "group ", id_.value(), " has lost ",
      lost == nullptr ? "a member" : absl::StrCat(lost->name(), " (", lost->departure(), ")"));
  const absl::Status status = absl::UnavailableError(absl::StrCat(
      interruption_, " and goes on with other members, in the middle of its step; call ",
      "Group::Refresh, and start the collective again"));
  if (Planted(PlantedBug::kPartialSumAsSuccess)) {
    std::vector<uint64_t> numbers;
    for (const auto& [number, run] : runs_) numbers.push_back(number);
    for (const uint64_t number : numbers) {
      const auto found = runs_.find(number);
      if (found == runs_.end()) continue;
      CollectiveRun& run = *found->second;
      if (run.abandoned || run.told_arrived || run.collective().held) continue;
      run.told_arrived = true;
      const Collective::Callback arrived = std::move(run.collective().arrived);
      if (arrived) arrived(now, run.result(), outbox);
    }
  }
  if (!Interrupt(now, status, outbox)) return;
  Leave(now, ChangeOver(now, outbox), outbox);
}

// After ChangeOver.
void GroupMachine::Leave(absl::Time now, const absl::Status& status, Outbox& outbox) {
  if (status.ok()) return;
  if (on_left_) {
    on_left_(now, status, outbox);
  } else {
    Fail(now, status, outbox);
  }
}

void GroupMachine::Reach(uint32_t rank, Outbox& outbox) {
  const std::string endpoint = view_->EndpointOf(AddressOf(rank));
  std::string& route = routes_[members_[rank]];
  if (route == endpoint) return;
  route = endpoint;
  outbox.Route(AddressOf(rank), endpoint);
}

bool GroupMachine::IsMember(const Message& message, uint32_t rank) const {
  if (rank >= size_) return false;
  const proto::Node* node = view_->FindNode(members_[rank]);
  return message.from() == AddressOf(rank) && node != nullptr &&
         Incarnation(node->incarnation()) == message.incarnation();
}

// Whether a message of another generation than the present one may be of one to come.
bool GroupMachine::MayBeNext(const GroupRound& round) const {
  if (round.group == id_ && round.generation <= generation_ && formed()) return false;
  const proto::Group* known = view_->FindGroup(round.group);
  if (known == nullptr || known->generation() < round.generation) return true;  // Not heard of yet.
  const auto& members = known->members();
  return known->generation() == round.generation &&
         std::find(members.begin(), members.end(), self_.value()) != members.end();
}

bool GroupMachine::change_pending() const {
  if (!formed()) return false;
  const proto::Group* group = view_->GroupOf(self_);
  if (group == nullptr || GroupId(group->id()) != id_ || group->generation() != generation_) {
    return true;
  }
  const proto::Node* node = view_->FindNode(self_);
  return size_ == 1 && node != nullptr && node->draining();
}

absl::Status GroupMachine::Reform(absl::Time now, uint64_t step, Outbox& outbox) {
  if (!failure_.ok()) return failure_;
  if (collectives() > 0 || !change_pending()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "group ", id_.value(), " cannot change now: ", collectives(),
        " collectives are under way, and a change is ", change_pending() ? "" : "not ", "pending"));
  }
  own_step_ = step;
  return ChangeOver(now, outbox);
}

absl::Status GroupMachine::ChangeOver(absl::Time now, Outbox& outbox) {
  const proto::Group* group = view_->GroupOf(self_);
  const proto::Node* node = view_->FindNode(self_);
  const bool drains = node != nullptr && node->draining();
  const bool stays = drains && group != nullptr && group->members_size() == 1;
  if (group != nullptr && group->state() == proto::Group::ACTIVE && !stays) {
    Form(now, *group, outbox);
    return absl::OkStatus();
  }
  std::string reason = "the scheduler's plan has no place for it";
  if (node != nullptr && !node->standby().empty()) reason = node->standby();
  if (node != nullptr && node->state() != proto::Node::ALIVE) reason = node->departure();
  size_ = 0;
  ready_ = false;
  EndExchange();
  superseded_ = false;
  interrupted_ = false;
  meet_by_ = absl::InfiniteFuture();
  if (drains) {
    return absl::CancelledError(absl::StrCat(view_->NameOf(self_),
                                             " was asked to go, and has left group ", id_.value(),
                                             " after step ", own_step_, "; the program can end"));
  }
  return absl::UnavailableError(absl::StrCat(view_->NameOf(self_), " left group ", id_.value(),
                                             " after step ", own_step_, ": ", reason,
                                             "; the group goes on without it, see `covey status`"));
}

// Somebody waits for this member in a generation that it will never take part in, because it knows
// of a newer one; so that one can never begin, and who waits for it may go on.
void GroupMachine::TellSuperseded(const Message& message, const GroupRound& round, Outbox& outbox) {
  if (message.envelope.has_group_abort()) return;
  const proto::Group* known = view_->FindGroup(round.group);
  const proto::Node* sender = view_->FindNode(message.from().node);
  if (known == nullptr || known->generation() <= round.generation || sender == nullptr ||
      Incarnation(sender->incarnation()) != message.incarnation()) {
    return;
  }
  outbox.Route(message.from(), view_->EndpointOf(message.from()));
  Message reply;
  reply.set_to(message.from());
  proto::GroupAbort& abort = *reply.envelope.mutable_group_abort();
  WriteRound(round, *abort.mutable_round());
  abort.set_reason("the group has a newer plan");
  abort.set_superseded(true);
  outbox.Send(std::move(reply));
}

// The members of this generation will never meet.
void GroupMachine::Abandon(absl::Time now, Outbox& outbox) {
  if (ready_ || superseded_) return;
  superseded_ = true;
  EndExchange();
  distance_prober_ = DistanceProber();
  prober_ = LinkProber();
  // Not all of them have heard it from the one who knew.
  for (uint32_t rank = 0; rank < size_; ++rank) {
    if (rank == rank_) continue;
    Reach(rank, outbox);
    Message message;
    message.set_to(AddressOf(rank));
    proto::GroupAbort& abort = *message.envelope.mutable_group_abort();
    WriteRound(round(), *abort.mutable_round());
    abort.set_reason("the group has a newer plan");
    abort.set_superseded(true);
    outbox.Send(std::move(message));
  }
  FollowGroup(now, outbox);
}

}  // namespace covey::worker
