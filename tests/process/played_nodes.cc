// SPDX-License-Identifier: Apache-2.0
#include "tests/process/played_nodes.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/cluster/view.h"
#include "common/net/grpc_channel.h"
#include "tests/process/epoch_channel.h"

namespace covey {
namespace {

// Workers of a host, and nodes of a rack.
constexpr size_t kHost = 4;
constexpr size_t kRack = 72;
constexpr size_t kBeatsMax = 16;
// Nodes that begin to register in one call, so that those before them beat in time.
constexpr size_t kJoinsPerWake = 16;

Member::Options MemberOptions(const PlayedNodes::Options& options, size_t index) {
  const bool is_server = index < options.servers;
  Member::Options member{.job_name = options.job};
  member.role = is_server ? proto::SERVER : proto::WORKER;
  member.rank = static_cast<int>(is_server ? index : index - options.servers);
  member.labels = absl::StrCat("zone-1/rack-", index / kRack, "/host-", index / kHost);
  member.endpoints = {options.endpoint};
  if (is_server) member.endpoints.push_back(options.endpoint);
  member.process_id = static_cast<uint64_t>(getpid());
  member.host = absl::StrCat("host-", index / kHost);
  member.scheduler = options.scheduler;
  member.register_deadline = options.register_deadline;
  member.seed = RandomFromSystem();
  return member;
}

}  // namespace

PlayedNodes::PlayedNodes(const Options& options, const Sink& sink) {
  const uint64_t job = JobFingerprint(options.job);
  const size_t count = options.servers + options.workers;
  for (size_t i = 0; i < count; ++i) {
    auto node =
        std::make_unique<Node>(MemberOptions(options, i), Incarnation(RandomFromSystem() | 1), job);
    if (i * options.holders % count < options.holders) {
      node->holds_views = true;
      node->channel =
          std::make_unique<GrpcChannel>(GrpcChannel::Options{.scheduler = options.scheduler}, sink);
    } else {
      node->channel = std::make_unique<EpochChannel>(options.scheduler, sink);
    }
    nodes_.push_back(std::move(node));
  }
}

void PlayedNodes::Receive(absl::Time now, const Message& message, Outbox&) {
  const size_t index = message.connection - 1;
  Node& node = *nodes_[index];
  if (node.is_silent) return;
  NoteReply(now, message, node);
  Outbox outbox;
  node.member.Receive(now, message, outbox);
  Flush(now, index, outbox);
}

void PlayedNodes::Wake(absl::Time now, Outbox&) {
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    WakeNode(now, wakes_.begin()->second);
  }
  for (size_t i = 0; i < kJoinsPerWake && joined_ < nodes_.size(); ++i) WakeNode(now, joined_++);
}

void PlayedNodes::WakeNode(absl::Time now, size_t index) {
  Outbox outbox;
  nodes_[index]->member.Wake(now, outbox);
  Flush(now, index, outbox);
}

absl::Time PlayedNodes::NextWake() const {
  if (joined_ < nodes_.size()) return absl::InfinitePast();
  return wakes_.empty() ? absl::InfiniteFuture() : wakes_.begin()->first;
}

void PlayedNodes::Flush(absl::Time now, size_t index, Outbox& outbox) {
  Node& node = *nodes_[index];
  for (Message& message : outbox.TakeMessages()) {
    proto::Header& header = *message.envelope.mutable_header();
    header.set_job(node.job);
    header.set_node(node.member.node().value());
    header.set_incarnation(node.incarnation.value());
    message.connection = index + 1;  // its reply copies it
    if (message.envelope.has_heartbeat_request()) {
      node.beats.emplace_back(header.request_id(), now);
      if (node.beats.size() > kBeatsMax) node.beats.erase(node.beats.begin());
    }
    node.channel->Send(std::move(message));
  }
  wakes_.erase({node.wake, index});
  node.wake = node.member.NextWake();
  wakes_.emplace(node.wake, index);
}

void PlayedNodes::NoteReply(absl::Time now, const Message& message, Node& node) {
  if (!message.envelope.has_heartbeat_reply() || !StatusOf(message).ok()) return;
  const uint64_t request = message.envelope.header().request_id();
  const auto beat = std::find_if(node.beats.begin(), node.beats.end(),
                                 [&](const auto& sent) { return sent.first == request; });
  if (beat == node.beats.end()) return;
  round_trips_.push_back(static_cast<float>(absl::ToDoubleSeconds(now - beat->second)));
  node.beats.erase(beat);
}

void PlayedNodes::Disconnect() {
  for (const auto& node : nodes_) node->channel = nullptr;
}

void PlayedNodes::Silence(size_t first, size_t count) {
  for (size_t i = first; i < first + count; ++i) {
    Node& node = *nodes_[i];
    node.is_silent = true;
    silent_.insert(node.member.node().value());
    wakes_.erase({node.wake, i});
  }
}

bool PlayedNodes::HoldersAgree() const {
  const std::string first = view().proto().SerializeAsString();
  return std::all_of(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    return !node->holds_views || node->is_silent ||
           node->member.view()->proto().SerializeAsString() == first;
  });
}

size_t PlayedNodes::Know(Epoch epoch) const {
  return std::count_if(nodes_.begin(), nodes_.end(), [&](const auto& node) {
    return !node->is_silent && node->member.view()->epoch() >= epoch;
  });
}

absl::Status PlayedNodes::Failure() const {
  for (const auto& node : nodes_) {
    if (!node->is_silent && node->member.state() == Member::State::kFailed) {
      return node->member.failure();
    }
  }
  return absl::OkStatus();
}

}  // namespace covey
