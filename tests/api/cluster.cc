// SPDX-License-Identifier: Apache-2.0
#include "tests/api/cluster.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/cluster/view.h"
#include "common/net/grpc_channel.h"
#include "common/net/loopback_transport.h"
#include "common/net/zmq_transport.h"
#include "common/runtime/event_loop.h"
#include "scheduler/log/file_log.h"
#include "scheduler/rpc/grpc_service.h"
#include "scheduler/scheduler_actor.h"
#include "server/server_actor.h"
#include "server/shard_actor.h"

namespace covey {
namespace {

constexpr char kJob[] = "default";
constexpr uint32_t kDataLoop = 1;

std::unique_ptr<Transport> Listen(const std::string& endpoint) {
  auto transport = MakeZmqTransport({.listen = endpoint});
  COVEY_CHECK(transport.ok());
  return *std::move(transport);
}

}  // namespace

class Cluster::Scheduler {
 public:
  explicit Scheduler(const Options& options)
      : actor_({.job_name = kJob,
                .servers = 1,
                .groups = options.groups,
                .workers_per_group = options.workers_per_group,
                .run = 1},
               std::nullopt) {
    log_.SetReceiver([this](Message message) { loop_.Deliver(std::move(message)); });
    loop_.AddPort({kSchedulerNode, kDiskLoop}, log_);
    auto service = scheduler::GrpcService::Start({.host = "127.0.0.1"}, actor_, loop_);
    COVEY_CHECK(service.ok());
    service_ = *std::move(service);
    loop_.SetDefaultPort(*service_);
    loop_.Start();
  }
  ~Scheduler() {
    service_->Shutdown();
    loop_.Stop();
  }

  uint32_t port() const { return service_->port(); }

 private:
  scheduler::SchedulerActor actor_;
  LoopbackHub hub_;
  const std::unique_ptr<Transport> transport_ = hub_.MakeTransport("");
  EventLoop loop_{{.job = JobFingerprint(kJob),
                   .self = {kSchedulerNode, 0},
                   .incarnation = Incarnation(1),
                   .thread_name = "scheduler"},
                  actor_,
                  *transport_};
  scheduler::NullLog log_;
  std::unique_ptr<scheduler::GrpcService> service_;
};

class Cluster::Server {
 public:
  explicit Server(const std::string& scheduler)
      : control_actor_({.member = {.job_name = kJob,
                                   .endpoints = {"", data_transport_->endpoint()},
                                   .host = "127.0.0.1",
                                   .scheduler = scheduler}}),
        channel_({.scheduler = scheduler},
                 [this](Message reply) { control_.Deliver(std::move(reply)); }) {
    control_.AddPort({kSchedulerNode, 0}, channel_);
    control_.SetDefaultPort(data_port_);
    control_actor_.OnChange([this](absl::Time, Outbox&) { MembershipChanged(); });
    control_.Start();
  }
  ~Server() {
    control_.Stop();
    data_.Stop();
  }

 private:
  void MembershipChanged() {
    const Member& member = control_actor_.member();
    const Epoch epoch = member.view()->epoch();
    if (member.state() != Member::State::kMember) return;
    control_.SetIdentity(JobFingerprint(kJob), member.node());
    control_.SetEpoch(epoch);
    if (!std::exchange(serving_, true)) {
      data_.SetIdentity(JobFingerprint(kJob), member.node());
      data_.AddPort({member.node(), 0}, control_port_);
      data_.Start();
    }
    data_.Post([this, epoch](absl::Time, Outbox&) { data_.SetEpoch(epoch); });
  }

  const std::unique_ptr<Transport> control_transport_ = Listen("");
  const std::unique_ptr<Transport> data_transport_ = Listen("tcp://127.0.0.1:0");
  server::ServerActor control_actor_;
  server::ShardActor data_actor_{{}};
  EventLoop control_{
      {.job = JobFingerprint(kJob), .incarnation = Incarnation(2), .thread_name = "control"},
      control_actor_,
      *control_transport_};
  EventLoop data_{{.job = JobFingerprint(kJob),
                   .self = {NodeId(), kDataLoop},
                   .incarnation = Incarnation(2),
                   .thread_name = "data"},
                  data_actor_,
                  *data_transport_};
  LoopPort control_port_{control_};
  LoopPort data_port_{data_};
  bool serving_ = false;  // owned by the control loop's thread
  GrpcChannel channel_;   // its sink uses the loop, so it is destroyed first
};

Cluster::Cluster(const Options& options)
    : scheduler_(std::make_unique<Scheduler>(options)),
      server_(std::make_unique<Server>(scheduler())) {}

Cluster::~Cluster() = default;

std::string Cluster::scheduler() const { return absl::StrCat("127.0.0.1:", scheduler_->port()); }

}  // namespace covey
