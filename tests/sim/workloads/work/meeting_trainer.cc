// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/work/meeting_trainer.h"

#include <algorithm>
#include <utility>

#include "common/cluster/view.h"
#include "tests/sim/workloads/expected_errors.h"
#include "tests/sim/workloads/work/pass_meetings.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

constexpr absl::Duration kLookAgain = absl::Milliseconds(100);
constexpr absl::Duration kPatience = absl::Hours(24);
constexpr absl::Duration kMeetMax = absl::Milliseconds(300);
// How long a worker waits for a group before it trains alone.
constexpr absl::Duration kGroupPatience = absl::Seconds(20);
// The longest time between the last example of a pass and its end.
constexpr absl::Duration kPauseMax = absl::Seconds(2);
constexpr uint32_t kItemsAhead = 3;

}  // namespace

void MeetingTrainer::Step(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  born_ = std::min(born_, now);
  if (plan_.recalls && !done_) HeedRecalls(now, client, outbox);
  if (done_ || under_way_ || now < next_) return;
  const proto::Group* group = client.member().view()->GroupOf(client.member().node());
  if (group == nullptr && (now < born_ + kGroupPatience || is_member_(client.member().node()))) {
    next_ = now + kLookAgain;
    return;
  }
  if (!pass_) return Ask(now, 0, client, outbox);
  if (!held_.empty()) return Train(now);
  const bool has_report = !finished_.empty() || !returned_.empty();
  if (has_report || names_ || !is_over()) {
    return Ask(now, names_ || is_over() ? 0 : kItemsAhead, client, outbox);
  }
  // Members that met without this one, or it has no group.
  if (group_pass_ > *pass_ || group == nullptr) return EndPass(now);
  Meet(now, *group, client, outbox);
}

void MeetingTrainer::Train(absl::Time now) {
  next_ = now + plan_.think_max * (slowness_ * random_.Uniform());
  if (random_.Chance(0.03)) {
    returned_.push_back(held_.front());
  } else {
    finished_.push_back(held_.front());
    ++progress_.trained;
  }
  held_.pop_front();
}

void MeetingTrainer::HeedRecalls(absl::Time now, client::ClientActor& client, Outbox& outbox) {
  if (recall_.TakeRecall()) {
    progress_.recalled += held_.size();
    returned_.insert(returned_.end(), held_.begin(), held_.end());
    held_.clear();
    if (!returned_.empty() && !under_way_) Ask(now, 0, client, outbox);
  }
  if (held_.empty()) return;
  proto::WorkRequest request = plan_.Request();
  request.set_pass(*pass_);
  recall_.Send(now, std::move(request), client, outbox);
}

void MeetingTrainer::Ask(absl::Time now, uint32_t wanted, client::ClientActor& client,
                         Outbox& outbox) {
  under_way_ = true;
  names_ = false;
  proto::Envelope request;
  proto::WorkRequest& body = *request.mutable_work_request();
  body = plan_.Request();
  body.set_wanted(wanted);
  if (pass_) body.set_pass(*pass_);
  for (const proto::WorkItem& item : std::exchange(finished_, {})) *body.add_finished() = item;
  for (const proto::WorkItem& item : std::exchange(returned_, {})) *body.add_returned() = item;
  client.control().Start(
      now, std::move(request), now + kPatience,
      [this](absl::Time at, const absl::Status& status, const proto::Envelope* reply, Outbox&) {
        Answered(at, status, reply);
      },
      outbox);
}

void MeetingTrainer::Answered(absl::Time now, const absl::Status& status,
                              const proto::Envelope* reply) {
  under_way_ = false;
  next_ = std::max(next_, now);
  if (!status.ok()) {
    // It is no longer a member.
    if (!IsExpected(status)) violations_.Add(kWork, status.ToString());
    next_ = now + kLookAgain;
    return;
  }
  const proto::WorkReply& body = reply->work_reply();
  passes_finished_ = std::max(passes_finished_, body.passes_finished());
  group_pass_ = body.group_pass();
  if (!pass_ || (is_new_ && group_pass_ > *pass_)) pass_ = group_pass_;
  for (const proto::WorkItem& item : body.items()) {
    if (item.pass() == *pass_) held_.push_back(item);
  }
  if (!held_.empty()) is_new_ = false;
  if (*pass_ >= plan_.passes) {
    done_ = true;
    ++progress_.told_done;
  } else if (is_over()) {
    if (!std::exchange(has_paused_, true)) next_ = now + kPauseMax * random_.Uniform();
  } else if (held_.empty()) {
    next_ = now + std::max(kLookAgain, absl::Milliseconds(body.ask_again_ms()));
  }
}

void MeetingTrainer::Meet(absl::Time now, const proto::Group& group, client::ClientActor& client,
                          Outbox& outbox) {
  under_way_ = true;
  proto::Envelope request;
  proto::BarrierRequest& body = *request.mutable_barrier_request();
  body.set_name(PassMeetings::BarrierName(*pass_, group));
  body.set_participants(static_cast<uint32_t>(group.members_size()));
  body.set_deadline_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(kMeetMax)));
  client.control().Start(
      now, std::move(request), now + kPatience,
      [this](absl::Time at, const absl::Status& status, const proto::Envelope*, Outbox&) {
        under_way_ = false;
        next_ = at;
        if (status.ok()) return EndPass(at);
        if (!IsExpected(status)) violations_.Add(kWork, status.ToString());
        names_ = true;
        next_ = at + kLookAgain * random_.Uniform();
      },
      outbox);
}

void MeetingTrainer::EndPass(absl::Time now) {
  is_new_ = false;
  names_ = true;
  has_paused_ = false;
  next_ = now;
  if (++*pass_ < plan_.passes) return;
  done_ = true;
  ++progress_.told_done;
}

}  // namespace covey::sim
