// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/work/work_ledger.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace covey::sim {

void WorkLedger::OnSend(absl::Time now, const Message& message) {
  if (message.envelope.has_work_request()) return NoteRequest(message);
  if (message.envelope.has_work_reply()) return NoteReply(now, message);
}

void WorkLedger::OnReceive(absl::Time now, absl::string_view, const Message& message) {
  if (message.to().node != kSchedulerNode) return;
  if (std::exchange(just_restarted_, false)) {
    nodes_before_.clear();
    first_asked_.clear();
    for (const proto::Node& known : published_()->nodes()) nodes_before_.insert(known.id());
  }
  const uint64_t node = message.from().node.value();
  if (message.envelope.work_request().wanted() == 0 || !nodes_before_.contains(node)) return;
  first_asked_.try_emplace(node, Asked{message.envelope.header().request_id(), now});
}

template <typename Work>
void WorkLedger::ForEach(const proto::WorkItem& item, Work work) {
  for (uint64_t i = 0; i < item.count(); ++i) {
    work(item.pass() * examples_ + item.first() + i);
  }
}

void WorkLedger::Complain(uint64_t example, const std::string& what) {
  violations_.Add("work", absl::StrCat("example ", example % examples_, " of pass ",
                                       example / examples_, " ", what));
}

void WorkLedger::NoteRequest(const Message& message) {
  const proto::WorkRequest& request = message.envelope.work_request();
  const RequestKey key{message.from().node.value(), message.envelope.header().request_id()};
  finished_[key] = {request.finished().begin(), request.finished().end()};
  returned_[key] = {request.returned().begin(), request.returned().end()};
  for (const proto::WorkItem& item : request.finished()) {
    ForEach(item, [this](uint64_t example) { all_[example].reported = true; });
  }
  // Returned items may be given out from now on, as far as an observer can tell.
  for (const proto::WorkItem& item : request.returned()) {
    ForEach(item, [this](uint64_t example) { all_[example].holder = 0; });
  }
}

void WorkLedger::NoteReply(absl::Time now, const Message& message) {
  if (!StatusOf(message).ok()) return;
  const proto::WorkReply& reply = message.envelope.work_reply();
  const RequestKey key{message.to().node.value(), message.envelope.header().request_id()};
  // A repeated reply has nothing new.
  if (!answered_.insert(key).second) return;
  for (const proto::WorkItem& item : finished_[key]) {
    ForEach(item, [&](uint64_t example) { Finish(now, key, example); });
  }
  for (const proto::WorkItem& item : reply.items()) {
    if (item.pass() >= passes_ || item.first() + item.count() > examples_) {
      violations_.Add("work", absl::StrCat("given is ", item.ShortDebugString()));
      continue;
    }
    ForEach(item, [&](uint64_t example) { Give(now, key, example); });
  }
  if (!reply.done()) return;
  for (uint64_t example = 0; example < examples_ * passes_; ++example) {
    if (!all_[example].reported) {
      return Complain(example, "was never reported, and all is said to be finished");
    }
  }
}

void WorkLedger::Finish(absl::Time now, const RequestKey& key, uint64_t example) {
  Example& at = all_[example];
  at.holder = 0;
  if (at.finished_by == 0) at.finished_by = key.first;
  if (at.finished_by == key.first || WasForgotten(now, at)) return;
  Complain(example, absl::StrCat("counts as finished by node ", at.finished_by, ", and by node ",
                                 key.first));
}

// A death is published at the same moment as its consequences; no node may have requested the view.
bool WorkLedger::HasDeparted(uint64_t node) const {
  for (const proto::Node& known : published_()->nodes()) {
    if (known.id() == node) return known.state() != proto::Node::ALIVE;
  }
  return true;
}

bool WorkLedger::WasForgotten(absl::Time now, const Example& example) const {
  if (now - example.first_doubted > kLease) return true;
  return std::any_of(restarts_.begin(), restarts_.end(), [&](absl::Time restart) {
    return example.first_given < restart && now - restart > kLease;
  });
}

void WorkLedger::Give(absl::Time now, const RequestKey& key, uint64_t example) {
  Example& at = all_[example];
  if (at.finished_by != 0 && !WasForgotten(now, at)) {
    Complain(example, absl::StrCat("is given to node ", key.first, ", but node ", at.finished_by,
                                   " has finished it"));
  }
  const uint64_t holder = at.holder;
  if (holder != 0) ++given_again_;
  if (holder != 0 && holder != key.first && !HasDeparted(holder) && !WasForgotten(now, at)) {
    Complain(example,
             absl::StrCat("was given to node ", key.first, " while node ", holder, " held it"));
  }
  at.holder = key.first;
  at.first_given = std::min(at.first_given, now);
  const auto asked = first_asked_.find(key.first);
  if (asked != first_asked_.end() && asked->second.request_id == key.second) {
    at.first_doubted = std::min(at.first_doubted, asked->second.at);
  }
}

}  // namespace covey::sim
