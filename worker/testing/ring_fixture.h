// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "worker/group/communicator.h"

namespace covey::worker {

// The members of one group (id 0 of generation 4), connected by queues that only keep the order per
// pair of members. By default they form at once and use the ring. For tests.
class Ring {
 public:
  static constexpr uint64_t kFirstNode = 10;
  static constexpr uint64_t kGeneration = 4;

  Ring(uint32_t size, size_t slice_bytes, uint64_t seed)
      : Ring(ActiveView(size),
             {.slice_bytes = slice_bytes,
              .rendezvous = RendezvousMode::kAtOnce,
              .algorithm = Algorithm::kRing},
             seed) {}
  // `view` is ActiveView with changes.
  Ring(proto::ClusterView view, const Communicator::Options& options, uint64_t seed)
      : size_(static_cast<uint32_t>(view.nodes_size())),
        random_(seed),
        links_(view.nodes_size() * view.nodes_size()) {
    for (uint32_t rank = 0; rank < size_; ++rank) {
      communicators_.push_back(std::make_unique<Communicator>(options));
      outboxes_.emplace_back();
    }
    SetView(std::move(view));
  }

  static proto::ClusterView ActiveView(uint32_t size) {
    proto::ClusterView view;
    view.set_epoch(1);
    proto::Group& group = *view.add_groups();
    group.set_id(0);
    group.set_generation(kGeneration);
    group.set_state(proto::Group::ACTIVE);
    for (uint32_t rank = 0; rank < size; ++rank) {
      proto::Node& node = *view.add_nodes();
      node.set_id(kFirstNode + rank);
      node.set_incarnation(100 + rank);
      node.set_role(proto::WORKER);
      node.set_state(proto::Node::ALIVE);
      node.set_rank(rank);
      node.set_name(absl::StrCat("worker-", rank));
      node.add_endpoints(absl::StrCat("tcp://127.0.0.1:", 7000 + rank));
      group.add_members(node.id());
    }
    return view;
  }

  void SetView(proto::ClusterView view) {
    auto made = ClusterView::Make(std::move(view));
    COVEY_CHECK(made.ok());
    for (uint32_t rank = 0; rank < size_; ++rank) {
      communicators_[rank]->SetView(now_, NodeId(kFirstNode + rank), *made, outboxes_[rank]);
    }
  }

  // Only this node receives the view.
  void SetView(uint32_t node, proto::ClusterView view) {
    auto made = ClusterView::Make(std::move(view));
    COVEY_CHECK(made.ok());
    communicators_[node]->SetView(now_, NodeId(kFirstNode + node), *made, outboxes_[node]);
  }

  Communicator& communicator(uint32_t rank) { return *communicators_[rank]; }
  Outbox& outbox(uint32_t rank) { return outboxes_[rank]; }
  uint32_t size() const { return size_; }
  absl::Time now() const { return now_; }
  // The receiver of messages to nodes that are no members.
  void SetElsewhere(std::function<void(uint32_t from, Message)> elsewhere) {
    elsewhere_ = std::move(elsewhere);
  }
  // Called after a member has received a message.
  void SetHeard(std::function<void(uint32_t to, const Message&)> heard) {
    heard_ = std::move(heard);
  }
  void Pass(absl::Duration time) { now_ += time; }
  // It sends and receives nothing any more; its messages in flight still arrive.
  void Kill(uint32_t rank) {
    Collect();
    dead_.insert(rank);
  }
  // It sends and receives nothing until it is thawed.
  void Freeze(uint32_t rank) { frozen_.insert(rank); }
  void Thaw(uint32_t rank) { frozen_.erase(rank); }
  bool IsStill(uint32_t rank) const { return IsDead(rank) || frozen_.contains(rank); }
  // Messages to it are copied, as over a network, so that it references no other member's memory
  // when it dies.
  void KeepApart(uint32_t rank) { apart_.insert(rank); }
  bool IsDead(uint32_t rank) const { return dead_.contains(rank); }
  // Sees and may change every message in flight; false: the message is lost.
  using Tamper = std::function<bool(uint32_t from, uint32_t to, Message&)>;
  void SetTamper(Tamper tamper) { tamper_ = std::move(tamper); }
  // Every message is delivered twice from now on.
  void RepeatMessages() { repeat_ = true; }

  // From now on messages take time, and StepInTime delivers them; the order per pair of members is
  // kept. InfiniteDuration() = lost.
  using Delay = std::function<absl::Duration(uint32_t from, uint32_t to, const Message&)>;
  void SetDelay(Delay delay) { delay_ = std::move(delay); }

  // Advances to the next message or wake-up; false when there is none before `end`.
  bool StepInTime(absl::Time end) {
    Collect();
    absl::Time next = flights_.empty() ? absl::InfiniteFuture() : flights_.begin()->first;
    const bool wake = std::any_of(communicators_.begin(), communicators_.end(),
                                  [&](const auto& one) { return one->NextWake() < next; });
    for (const auto& one : communicators_) next = std::min(next, one->NextWake());
    if (next >= end) return false;
    now_ = std::max(now_, next);
    if (wake) {
      for (uint32_t rank = 0; rank < size_; ++rank) {
        if (communicators_[rank]->NextWake() <= now_)
          communicators_[rank]->Wake(now_, outboxes_[rank]);
      }
      return true;
    }
    const Flight flight = std::move(flights_.begin()->second);
    flights_.erase(flights_.begin());
    communicators_[flight.to]->Receive(now_, flight.message, outboxes_[flight.to]);
    return true;
  }

  // Puts the members' messages onto the links, with the fields that the loop would fill in.
  void Collect() {
    for (uint32_t rank = 0; rank < size_; ++rank) {
      for (const auto& [peer, endpoint] : outboxes_[rank].TakeRoutes()) {
        if (endpoint.empty() && peer.node.value() < kFirstNode + size_)
          link(rank, peer.node).clear();
      }
      for (Message& message : outboxes_[rank].TakeMessages()) {
        if (IsDead(rank)) continue;
        message.envelope.mutable_header()->set_node(kFirstNode + rank);
        message.envelope.mutable_header()->set_incarnation(100 + rank);
        if (message.to().node.value() >= kFirstNode + size_) {
          elsewhere_(rank, std::move(message));
          continue;
        }
        if (delay_) {
          Fly(rank, std::move(message));
          continue;
        }
        std::deque<Message>& queue = link(rank, message.to().node);
        queue.push_back(std::move(message));
      }
    }
  }

  // Delivers one message of a random link; false when there is none.
  bool Step() {
    Collect();
    std::vector<size_t> busy;
    for (size_t i = 0; i < links_.size(); ++i) {
      if (!links_[i].empty() && !frozen_.contains(static_cast<uint32_t>(i % size_))) {
        busy.push_back(i);
      }
    }
    if (busy.empty()) return false;
    const size_t chosen = busy[random_.Below(busy.size())];
    const uint32_t to = static_cast<uint32_t>(chosen % size_);
    {
      Message message = std::move(links_[chosen].front());
      links_[chosen].pop_front();
      if (IsDead(to)) return true;
      if (tamper_ && !tamper_(static_cast<uint32_t>(chosen) / size_, to, message)) return true;
      if (apart_.contains(to)) {
        for (Buffer& frame : message.frames) frame = Buffer::CopyOf(frame.bytes());
      }
      communicators_[to]->Receive(now_, message, outboxes_[to]);
      if (repeat_) communicators_[to]->Receive(now_, message, outboxes_[to]);
      if (heard_) heard_(to, message);
    }
    return true;
  }

  // Runs until no message is left, and every machine has noticed which frames are free.
  void Run() {
    for (uint32_t round = 0; round < 2 * size_; ++round) {
      while (Step()) {
      }
      for (uint32_t rank = 0; rank < size_; ++rank) {
        if (!IsStill(rank)) communicators_[rank]->Wake(now_, outboxes_[rank]);
      }
    }
  }

  std::deque<Message>& link(uint32_t from, NodeId to) {
    return links_[from * size_ + (to.value() - kFirstNode)];
  }

 private:
  struct Flight {
    uint32_t to = 0;
    Message message;
  };

  void Fly(uint32_t from, Message message) {
    const auto to = static_cast<uint32_t>(message.to().node.value() - kFirstNode);
    const absl::Duration delay = delay_(from, to, message);
    if (delay == absl::InfiniteDuration()) return;
    absl::Time& arrival = arrivals_[{from, to}];
    arrival = std::max(arrival, now_ + delay);
    flights_.insert({arrival, Flight{.to = to, .message = std::move(message)}});
  }

  const uint32_t size_;
  Random random_;
  absl::Time now_ = absl::UnixEpoch();
  bool repeat_ = false;
  std::set<uint32_t> dead_;
  std::set<uint32_t> frozen_;
  std::set<uint32_t> apart_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<Outbox> outboxes_;
  std::function<void(uint32_t, Message)> elsewhere_;
  std::function<void(uint32_t, const Message&)> heard_;
  std::vector<std::deque<Message>> links_;  // [from * size + to]
  Delay delay_;
  Tamper tamper_;
  std::multimap<absl::Time, Flight> flights_;                     // by arrival
  std::map<std::pair<uint32_t, uint32_t>, absl::Time> arrivals_;  // the newest, by from and to
};

}  // namespace covey::worker
