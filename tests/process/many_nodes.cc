// SPDX-License-Identifier: Apache-2.0

// Plays many nodes of one job to a real scheduler, each over a gRPC connection of its own: they
// register at the same time, beat for a while, and then some of them fall silent. Prints a line of
// JSON at the end of each phase, and runs until SIGTERM.

#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/set_once.h"
#include "common/base/status_macros.h"
#include "common/net/zmq_transport.h"
#include "common/runtime/config_file.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/exposure.h"
#include "common/runtime/process_main.h"
#include "tests/process/played_nodes.h"

namespace covey {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kLook = absl::Milliseconds(10);

struct Config {
  PlayedNodes::Options nodes = {.job = "many-nodes", .servers = 4, .workers = 96, .holders = 4};
  absl::Duration duration = absl::Seconds(5);
  // The last ones, workers.
  uint32_t silent = 5;
  absl::Duration deadline = absl::Minutes(2);
};

// The connections of this process to a port.
struct Connections {
  uint64_t count = 0;
  // Payload of TCP in both directions since they were made.
  uint64_t bytes = 0;
};

Connections ConnectionsTo(uint16_t port) {
  Connections found;
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return found;
  while (const dirent* const entry = readdir(folder)) {
    int descriptor = 0;
    if (!absl::SimpleAtoi(entry->d_name, &descriptor)) continue;
    sockaddr_storage peer{};
    socklen_t size = sizeof(peer);
    if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    const uint16_t peer_port = peer.ss_family == AF_INET
                                   ? reinterpret_cast<sockaddr_in&>(peer).sin_port
                                   : reinterpret_cast<sockaddr_in6&>(peer).sin6_port;
    tcp_info facts{};
    size = sizeof(facts);
    if (ntohs(peer_port) != port ||
        getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &facts, &size) != 0) {
      continue;
    }
    ++found.count;
    found.bytes += facts.tcpi_bytes_acked + facts.tcpi_bytes_received;
  }
  closedir(folder);
  return found;
}

double ProcessSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double Round(double seconds) { return std::round(seconds * 1e6) / 1e6; }

// The phases; on the program's own thread.
class Play {
 public:
  Play(const Config& config, PlayedNodes& nodes, EventLoop& loop, const std::atomic<uint64_t>& lost)
      : config_(config), nodes_(nodes), loop_(loop), lost_(lost) {
    port_ = static_cast<uint16_t>(
        std::atoi(config.nodes.scheduler.substr(config.nodes.scheduler.rfind(':') + 1).c_str()));
  }

  absl::Status Run() {
    COVEY_RETURN_IF_ERROR(Register());
    COVEY_RETURN_IF_ERROR(Beat());
    if (config_.silent > 0) COVEY_RETURN_IF_ERROR(Silence());
    Print("done", Json::object());
    return absl::OkStatus();
  }

 private:
  // The result of `ask` on the loop's thread.
  template <typename Ask>
  std::invoke_result_t<Ask> On(Ask ask) {
    const SetOnce<std::invoke_result_t<Ask>> result;
    while (!loop_.Post([&](absl::Time, Outbox&) { result.Set(ask()); })) sched_yield();
    return *result.WaitFor(absl::InfiniteDuration());
  }

  // The groups form when all have registered.
  absl::Status Register() {
    const absl::Time begin = MonotonicNow();
    loop_.Start();
    const auto formed = [this] { return !nodes_.view().proto().groups().empty(); };
    COVEY_ASSIGN_OR_RETURN(const absl::Time all, Await("all nodes register", formed));
    const Epoch epoch = On([this] { return nodes_.view().epoch(); });
    COVEY_ASSIGN_OR_RETURN(const absl::Time known, AwaitKnown(epoch, nodes_.size()));
    Print("registered",
          {{"nodes", nodes_.size()},
           {"connections", ConnectionsTo(port_).count},
           {"registered_s", Seconds(all - begin)},
           {"all_know_s", Seconds(known - begin)},
           {"view_bytes", On([this] { return nodes_.view().proto().ByteSizeLong(); })},
           {"bytes_per_node", ConnectionsTo(port_).bytes / nodes_.size()}});
    return absl::OkStatus();
  }

  absl::Status Beat() {
    On([this] { return nodes_.TakeRoundTrips(); });
    Print("beats", Json::object());
    const uint64_t bytes = ConnectionsTo(port_).bytes;
    const double own = ProcessSeconds();
    const absl::Time begin = MonotonicNow();
    poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(config_.duration)));
    std::vector<float> trips = On([this] { return nodes_.TakeRoundTrips(); });
    const double seconds = absl::ToDoubleSeconds(MonotonicNow() - begin);
    const double spent = ProcessSeconds() - own;
    const uint64_t moved = ConnectionsTo(port_).bytes - bytes;
    if (trips.empty()) return absl::InternalError("no heartbeat was answered");
    std::sort(trips.begin(), trips.end());
    Print("beaten", {{"replies", trips.size()},
                     {"seconds", Round(seconds)},
                     {"replies_per_s", Round(static_cast<double>(trips.size()) / seconds)},
                     {"p50_s", Round(trips[trips.size() / 2])},
                     {"p99_s", Round(trips[trips.size() * 99 / 100])},
                     {"longest_s", Round(trips.back())},
                     {"bytes_per_node_and_s", Round(static_cast<double>(moved) / seconds /
                                                    static_cast<double>(nodes_.size()))},
                     {"own_processor_s", Round(spent)}});
    return Check();
  }

  absl::Status Silence() {
    const size_t others = nodes_.size() - config_.silent;
    const uint64_t bytes = ConnectionsTo(port_).bytes;
    const absl::Time begin = MonotonicNow();
    On([&] {
      nodes_.Silence(others, config_.silent);
      return true;
    });
    const auto dead = [this] { return Dead().silent == config_.silent; };
    const auto some = [this] { return Dead().silent > 0; };
    COVEY_ASSIGN_OR_RETURN(const absl::Time first, Await("a silent node is declared dead", some));
    COVEY_ASSIGN_OR_RETURN(const absl::Time all, Await("silent nodes are declared dead", dead));
    const Epoch epoch = On([this] { return nodes_.view().epoch(); });
    COVEY_ASSIGN_OR_RETURN(const absl::Time known, AwaitKnown(epoch, others));
    const uint64_t moved = ConnectionsTo(port_).bytes - bytes;
    COVEY_RETURN_IF_ERROR(Await("views agree", [this] { return nodes_.HoldersAgree(); }).status());
    Print("silenced", {{"silent", config_.silent},
                       {"first_dead_s", Seconds(first - begin)},
                       {"all_dead_s", Seconds(all - begin)},
                       {"all_know_s", Seconds(known - begin)},
                       {"bytes_per_node", moved / nodes_.size()},
                       {"falsely_dead", On([this] { return Dead().others; })}});
    return Check();
  }

  struct Count {
    uint32_t silent = 0;
    uint32_t others = 0;
  };
  // In the newest view; on the loop's thread.
  Count Dead() const {
    Count dead;
    for (const proto::Node& node : nodes_.view().proto().nodes()) {
      if (node.state() != proto::Node::DEAD) continue;
      ++(nodes_.IsSilent(NodeId(node.id())) ? dead.silent : dead.others);
    }
    return dead;
  }
  // No node but the silent ones has been declared dead.
  absl::Status Check() {
    COVEY_RETURN_IF_ERROR(On([this] { return nodes_.Failure(); }));
    const uint32_t falsely = On([this] { return Dead().others; });
    if (falsely == 0 && lost_ == 0) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(falsely, " nodes that beat were declared dead, and ",
                                            lost_.load(), " replies found no room here"));
  }

  // When `holds` on the loop's thread.
  absl::StatusOr<absl::Time> Await(const std::string& what, const std::function<bool()>& holds) {
    const absl::Time until = MonotonicNow() + config_.deadline;
    while (!On(holds)) {
      COVEY_RETURN_IF_ERROR(On([this] { return nodes_.Failure(); }));
      if (MonotonicNow() >= until) {
        return absl::DeadlineExceededError(
            absl::StrCat("not within ", absl::FormatDuration(config_.deadline), ": ", what));
      }
      poll(nullptr, 0, static_cast<int>(absl::ToInt64Milliseconds(kLook)));
    }
    return MonotonicNow();
  }
  absl::StatusOr<absl::Time> AwaitKnown(Epoch epoch, size_t nodes) {
    return Await(absl::StrCat(nodes, " nodes know epoch ", epoch.value()),
                 [&] { return nodes_.Know(epoch) >= nodes; });
  }

  static double Seconds(absl::Duration duration) { return Round(absl::ToDoubleSeconds(duration)); }
  static void Print(const std::string& phase, Json facts) {
    Json line = {{"phase", phase}};
    line.update(facts);
    std::cout << line.dump() << std::endl;
  }

  const Config& config_;
  PlayedNodes& nodes_;
  EventLoop& loop_;
  const std::atomic<uint64_t>& lost_;
  uint16_t port_ = 0;
};

absl::Status Run(Config config) {
  AllowManyConnections();
  COVEY_ASSIGN_OR_RETURN(const auto transport, MakeZmqTransport({.listen = "tcp://127.0.0.1:0"}));
  config.nodes.endpoint = transport->endpoint();
  config.nodes.register_deadline = config.deadline;
  std::atomic<uint64_t> lost{0};
  EventLoop* loop = nullptr;
  PlayedNodes nodes(config.nodes, [&](Message message) {
    if (!loop->Deliver(std::move(message))) ++lost;
  });
  EventLoop running({.job = 0, .self = {}, .incarnation = {}, .thread_name = "nodes"}, nodes,
                    *transport);
  loop = &running;
  const absl::Status status = Play(config, nodes, running, lost).Run();
  if (status.ok()) WaitForTermination();
  running.Stop();
  nodes.Disconnect();
  return status;
}

int Main(int argc, char** argv) {
  InitProcess("many_nodes");
  Config config;
  ConfigFile options("many_nodes", "Plays the nodes of a large cluster to a scheduler.");
  options.Add("scheduler", &config.nodes.scheduler, "host:port of the scheduler");
  options.Add("job", &config.nodes.job, "name of the job");
  options.Add("servers", &config.nodes.servers, "nodes that are servers");
  options.Add("workers", &config.nodes.workers, "nodes that are workers, of all groups");
  options.Add("holders", &config.nodes.holders, "nodes that hold views and not only their epochs");
  options.Add("duration", &config.duration, "of the heartbeats that are measured");
  options.Add("silent", &config.silent, "nodes that fall silent, the last ones; 0 = none");
  options.Add("deadline", &config.deadline, "of everything that is waited for");
  if (const std::optional<int> code = options.LoadForMain(argc, argv)) return *code;
  const absl::Status status = Run(config);
  if (!status.ok()) LogError("failed", {{"reason", status.message()}});
  return status.ok() ? EXIT_SUCCESS : EXIT_FAILURE;
}

}  // namespace
}  // namespace covey

int main(int argc, char** argv) { return covey::Main(argc, argv); }
