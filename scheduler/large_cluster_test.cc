// SPDX-License-Identifier: Apache-2.0

// The real scheduler's actor with tens of thousands of nodes that only register, beat and watch,
// under a virtual clock. Logs what a node is sent, and the time that the actor takes.

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/base/version.h"
#include "common/cluster/view.h"
#include "common/cluster/view_change.h"
#include "scheduler/log/published_views.h"
#include "scheduler/scheduler_actor.h"

namespace covey::scheduler {
namespace {

// Of virtual time: what the loop needs for a message, a disk for a record, and a message for its
// way. A probe looks twice.
constexpr absl::Duration kCallTime = absl::Microseconds(20);
constexpr absl::Duration kDiskTime = absl::Milliseconds(5);
constexpr absl::Duration kWayTime = absl::Milliseconds(1);
constexpr absl::Duration kProbeTime = absl::Milliseconds(500);
constexpr absl::Duration kArrival = absl::Microseconds(100);
constexpr absl::Duration kBeat = absl::Milliseconds(500);
constexpr size_t kRack = 72;
// One node of so many really holds a view.
constexpr size_t kHolds = 5000;

struct Size {
  uint32_t servers = 0;
  uint32_t groups = 0;
  uint32_t workers_per_group = 0;
  uint32_t nodes() const { return servers + groups * workers_per_group; }
};

// What has been sent to nodes since the last Reset, heartbeats apart.
struct Sent {
  uint64_t messages = 0;
  uint64_t bytes = 0;
  uint64_t largest_share = 0;  // of one node, in bytes
  double actor_seconds = 0;    // of processor time
};

double ThreadSeconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class LargeCluster {
 public:
  LargeCluster(const Size& size, bool takes_changes)
      : size_(size),
        takes_changes_(takes_changes),
        actor_({.job_name = "job",
                .servers = size.servers,
                .groups = size.groups,
                .workers_per_group = size.workers_per_group},
               std::nullopt),
        nodes_(size.nodes()) {
    InActor([&](Outbox& outbox) { actor_.Wake(now_, outbox); });
  }

  // All nodes register, one every kArrival. Until each knows the view with all groups.
  void Join() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      At(now_ + i * kArrival, [this, i] { Receive(Registration(i)); });
    }
    RunUntil([this] { return !published().groups().empty() && AllKnow(); });
  }
  // Ends these nodes, and tells the scheduler that their connections have broken. Until all others
  // know that they are dead.
  void Kill(size_t first, size_t count) {
    for (size_t i = first; i < first + count; ++i) {
      nodes_[i].lives = false;
      Message lost = ToScheduler();
      lost.envelope.set_from_loop(kProbeLoop);
      lost.envelope.mutable_header()->set_node(kSchedulerNode.value());
      lost.envelope.mutable_connection_lost()->set_node(nodes_[i].id);
      lost.envelope.mutable_connection_lost()->set_incarnation(i + 1);
      At(now_ + kWayTime, [this, lost] { Receive(lost); });
    }
    RunUntil([&] { return Dead() == count && AllKnow(); });
  }
  void Run(absl::Duration duration) {
    bool over = false;
    At(now_ + duration, [&over] { over = true; });
    RunUntil([&over] { return over; });
  }

  const proto::ClusterView& published() const { return actor_.published(); }
  absl::Time now() const { return now_; }
  // The views that some nodes hold.
  const std::map<size_t, proto::ClusterView>& held() const { return held_; }
  Sent TakeSent() {
    for (Node& node : nodes_) {
      sent_.largest_share = std::max(sent_.largest_share, std::exchange(node.bytes, 0));
    }
    return std::exchange(sent_, {});
  }

 private:
  struct Node {
    uint64_t id = 0;
    uint64_t epoch = 0;
    uint64_t bytes = 0;
    bool lives = true;
  };

  void At(absl::Time when, std::function<void()> event) {
    events_.emplace(std::pair(when, ++events_made_), std::move(event));
  }
  void RunUntil(const std::function<bool()>& done) {
    while (!done()) {
      ASSERT_FALSE(events_.empty());
      if (actor_.NextWake() <= std::max(now_, events_.begin()->first.first)) {
        now_ = std::max(now_, actor_.NextWake());
        InActor([&](Outbox& outbox) { actor_.Wake(now_, outbox); });
        continue;
      }
      now_ = std::max(now_, events_.begin()->first.first);
      const std::function<void()> event = std::move(events_.begin()->second);
      events_.erase(events_.begin());
      event();
    }
  }
  void InActor(const std::function<void(Outbox&)>& call) {
    Outbox outbox;
    const double begin = ThreadSeconds();
    call(outbox);
    sent_.actor_seconds += ThreadSeconds() - begin;
    now_ += kCallTime;
    for (Message& message : outbox.TakeMessages()) Take(std::move(message));
  }
  void Receive(const Message& message) {
    InActor([&](Outbox& outbox) { actor_.Receive(now_, message, outbox); });
  }

  static Message ToScheduler() {
    Message message;
    message.set_to({kSchedulerNode, 0});
    return message;
  }
  Message From(size_t index) {
    Message message = ToScheduler();
    message.connection = index + 1;
    proto::Header& header = *message.envelope.mutable_header();
    header.set_node(nodes_[index].id);
    header.set_incarnation(index + 1);
    header.set_request_id(++requests_);
    if (nodes_[index].id != 0) header.set_job(JobFingerprint("job"));
    return message;
  }
  Message Registration(size_t index) {
    Message message = From(index);
    proto::RegisterRequest& request = *message.envelope.mutable_register_request();
    const bool is_server = index < size_.servers;
    request.set_job_name("job");
    request.set_role(is_server ? proto::SERVER : proto::WORKER);
    request.set_rank(static_cast<int>(is_server ? index : index - size_.servers));
    request.set_labels(
        absl::StrCat("zone-1/rack-", index / kRack, "/host-", index / 4, "/gpu-", index % 4));
    request.add_endpoints(
        is_server ? "" : absl::StrCat("tcp://10.12.", index / 250, ".", index % 250, ":34567"));
    if (is_server) request.add_endpoints("tcp://10.12.250.250:34567");
    request.set_process_id(100'000 + index);
    request.set_host(absl::StrCat("node-", index / 4));
    request.set_data_key(std::string(32, 'k'));
    request.set_version(kVersion);
    return message;
  }
  void Watch(size_t index) {
    Message message = From(index);
    proto::WatchViewRequest& watch = *message.envelope.mutable_watch_view_request();
    watch.set_known_epoch(nodes_[index].epoch);
    watch.set_takes_changes(takes_changes_);
    At(now_ + kWayTime, [this, message = std::move(message)] { Receive(message); });
  }
  void Beat(size_t index) {
    if (!nodes_[index].lives) return;
    Message message = From(index);
    proto::HeartbeatRequest& beat = *message.envelope.mutable_heartbeat_request();
    if (index >= size_.servers) beat.mutable_progress()->set_step(1);
    Receive(message);
    At(now_ + kBeat, [this, index] { Beat(index); });
  }

  // What leaves the actor.
  void Take(Message message) {
    if (message.envelope.has_disk_append()) {
      Message durable = MakeReply(message);
      durable.envelope.set_from_loop(kDiskLoop);
      durable.envelope.mutable_disk_durable()->set_index(message.envelope.disk_append().index());
      At(now_ + kDiskTime, [this, durable] { Receive(durable); });
    } else if (message.envelope.has_probe_request()) {
      Message reply = MakeReply(message);
      reply.envelope.set_from_loop(kProbeLoop);
      proto::ProbeReply& body = *reply.envelope.mutable_probe_reply();
      body.set_node(message.envelope.probe_request().node());
      body.set_incarnation(message.envelope.probe_request().incarnation());
      body.set_result(proto::ProbeReply::REFUSED);
      At(now_ + kProbeTime, [this, reply] { Receive(reply); });
    } else if (!message.envelope.has_heartbeat_reply()) {
      TakeReply(message.connection - 1, std::move(message));
    }
  }
  void TakeReply(size_t index, Message message) {
    ASSERT_TRUE(StatusOf(message).ok()) << StatusOf(message);
    Node& node = nodes_[index];
    const size_t bytes =
        message.frames.empty() ? message.envelope.ByteSizeLong() : message.frames[0].size();
    ++sent_.messages;
    sent_.bytes += bytes;
    node.bytes += bytes;
    if (!node.lives) return;
    if (message.envelope.has_register_reply()) {
      node.id = message.envelope.register_reply().node();
      Hold(index, message.envelope.register_reply().view());
      At(now_ + kBeat, [this, index] { Beat(index); });
    } else {
      node.epoch = message.envelope.watch_view_reply().view().epoch();
      if (index % kHolds == 0) {
        UnpackWatchReply(message);
        const proto::WatchViewReply& news = message.envelope.watch_view_reply();
        if (news.has_change()) {
          const auto view = ApplyViewChange(held_[index], news.change());
          ASSERT_TRUE(view.ok()) << view.status();
          held_[index] = *view;
        } else {
          held_[index] = news.view();
        }
      }
    }
    Watch(index);
  }
  void Hold(size_t index, const proto::ClusterView& view) {
    nodes_[index].epoch = view.epoch();
    if (index % kHolds == 0) held_[index] = view;
  }

  size_t Dead() const {
    return std::count_if(published().nodes().begin(), published().nodes().end(),
                         [](const auto& node) { return node.state() == proto::Node::DEAD; });
  }
  bool AllKnow() {
    // Asked for after each event: most often the same node is still behind.
    for (size_t seen = 0; seen < nodes_.size(); ++seen) {
      const Node& node = nodes_[behind_];
      if (node.lives && node.epoch != published().epoch()) return false;
      behind_ = (behind_ + 1) % nodes_.size();
    }
    return true;
  }

  const Size size_;
  const bool takes_changes_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  SchedulerActor actor_;
  std::vector<Node> nodes_;
  std::map<size_t, proto::ClusterView> held_;
  std::map<std::pair<absl::Time, uint64_t>, std::function<void()>> events_;
  uint64_t events_made_ = 0;
  uint64_t requests_ = 0;
  size_t behind_ = 0;
  Sent sent_;
};

void Report(absl::string_view what, const Size& size, const Sent& sent, absl::Duration took) {
  LogInfo("large_cluster", {{"nodes", size.nodes()},
                            {"what", what},
                            {"replies", sent.messages},
                            {"bytes_per_node", sent.bytes / size.nodes()},
                            {"bytes_max", sent.largest_share},
                            {"processor_seconds", sent.actor_seconds},
                            {"virtual_seconds", absl::ToDoubleSeconds(took)}});
}

void ExpectEqualViews(const LargeCluster& cluster) {
  ASSERT_FALSE(cluster.held().empty());
  for (const auto& [node, view] : cluster.held()) {
    EXPECT_EQ(view.SerializeAsString(), cluster.published().SerializeAsString()) << node;
  }
}

// What each watcher cost when all were sent views: a copy, which was serialized for it.
double CopySeconds(const proto::ClusterView& view, size_t nodes) {
  constexpr int kCopies = 20;
  const double begin = ThreadSeconds();
  for (int i = 0; i < kCopies; ++i) {
    proto::WatchViewReply reply;
    *reply.mutable_view() = view;
    EXPECT_GT(reply.SerializeAsString().size(), 0u);
  }
  return (ThreadSeconds() - begin) / kCopies * static_cast<double>(nodes);
}

// Of a worker: what every other node is sent.
void MeasureDeath(const Size& size) {
  for (const bool takes_changes : {false, true}) {
    LargeCluster cluster(size, takes_changes);
    cluster.Join();
    cluster.Run(absl::Seconds(2));
    cluster.TakeSent();
    const absl::Time begin = cluster.now();
    cluster.Kill(size.servers + 1, 1);
    const Sent sent = cluster.TakeSent();
    Report(takes_changes ? "a death, as changes" : "a death, as views", size, sent,
           cluster.now() - begin);
    ExpectEqualViews(cluster);
    if (takes_changes) {
      EXPECT_LT(sent.largest_share, 4096u);
      continue;
    }
    LogInfo("as_before", {{"processor_seconds", CopySeconds(cluster.published(), size.nodes())}});
  }
}

TEST(LargeClusterTest, ADeathAmong1000) {
  MeasureDeath({.servers = 10, .groups = 10, .workers_per_group = 99});
}

TEST(LargeClusterTest, ADeathAmong10000) {
  MeasureDeath({.servers = 100, .groups = 22, .workers_per_group = 450});
}

// All nodes of the largest clusters register at the same time, and then a rack fails.
TEST(LargeClusterTest, AStormOf27360AndTheLossOfARack) {
  constexpr Size kSize = {.servers = 360, .groups = 72, .workers_per_group = 375};
  const double begin = ThreadSeconds();
  LargeCluster cluster(kSize, /*takes_changes=*/true);
  const absl::Time joined = cluster.now();
  cluster.Join();
  Report("all join", kSize, cluster.TakeSent(), cluster.now() - joined);
  LogInfo("view", {{"bytes", cluster.published().ByteSizeLong()}});
  EXPECT_EQ(cluster.published().nodes_size(), 27'360);
  EXPECT_EQ(cluster.published().groups_size(), 72);
  cluster.Run(absl::Seconds(2));
  Report("2 s of heartbeats", kSize, cluster.TakeSent(), absl::Seconds(2));
  const absl::Time lost = cluster.now();
  cluster.Kill(kSize.servers, kRack);
  const Sent sent = cluster.TakeSent();
  Report("a rack fails", kSize, sent, cluster.now() - lost);
  EXPECT_LT(sent.largest_share, 256u << 10);
  ExpectEqualViews(cluster);
  const double took = ThreadSeconds() - begin;
  LogInfo("in_all", {{"processor_seconds", took}});
  EXPECT_LT(took, 120);
}

}  // namespace
}  // namespace covey::scheduler
