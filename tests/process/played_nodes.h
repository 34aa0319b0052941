// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/net/transport.h"
#include "common/runtime/actor.h"
#include "common/runtime/member.h"

namespace covey {

// Many nodes of one job on one loop: each is a Member, and has a connection to the scheduler of its
// own. They register, beat and watch the view, and do nothing else.
//
// Actor-confined. It sends by itself, on the loop's thread, because each node has another identity.
class PlayedNodes : public Actor {
 public:
  struct Options {
    std::string scheduler;  // "host:port"
    std::string job;
    // The first nodes, in order of rank; the others are workers, in order of rank.
    uint32_t servers = 0;
    uint32_t workers = 0;
    // At which all of them listen.
    std::string endpoint;
    // As many nodes, evenly among all and the first one among them, hold views; the others hold
    // the epochs of views (EpochChannel). At least 1.
    uint32_t holders = 1;
    absl::Duration register_deadline;
  };
  // Called on gRPC's threads with what arrives.
  using Sink = std::function<void(Message)>;

  // Connects when its loop starts. Stop the loop, call Disconnect, destroy the loop.
  PlayedNodes(const Options& options, const Sink& sink);

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

  void Disconnect();
  size_t size() const { return nodes_.size(); }
  // From now on these nodes send nothing and hear nothing; their connections stay open.
  void Silence(size_t first, size_t count);
  // The newest view of a node that holds views.
  const ClusterView& view() const { return *nodes_.front()->member.view(); }
  // Whether all nodes that hold views and are not silent hold the same one as view().
  bool HoldersAgree() const;
  // Nodes that are not silent and know this epoch or a later one.
  size_t Know(Epoch epoch) const;
  // Of a node that is not silent and is no member any more. OK: there is none.
  absl::Status Failure() const;
  // Numbers of the silent ones among the nodes of the job, for a look into a view.
  bool IsSilent(NodeId node) const { return silent_.contains(node.value()); }

  // Seconds from heartbeats to their replies, since the last call.
  std::vector<float> TakeRoundTrips() { return std::exchange(round_trips_, {}); }

 private:
  struct Node {
    Node(const Member::Options& options, Incarnation of, uint64_t job)
        : incarnation(of), job(job), member(options, next_request_id) {}

    const Incarnation incarnation;
    const uint64_t job;
    uint64_t next_request_id = 1;
    Member member;
    std::unique_ptr<MessagePort> channel;
    bool holds_views = false;
    bool is_silent = false;
    absl::Time wake = absl::InfinitePast();
    // Request ids of heartbeats without a reply, and when they were sent.
    std::vector<std::pair<uint64_t, absl::Time>> beats;
  };

  void WakeNode(absl::Time now, size_t index);
  void Flush(absl::Time now, size_t index, Outbox& outbox);
  void NoteReply(absl::Time now, const Message& message, Node& node);

  std::vector<std::unique_ptr<Node>> nodes_;
  // The first ones, which have begun to register.
  size_t joined_ = 0;
  // When each of these has to wake, and its index.
  std::set<std::pair<absl::Time, size_t>> wakes_;
  std::set<uint64_t> silent_;  // node ids
  std::vector<float> round_trips_;
};

}  // namespace covey
