// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/set_once.h"
#include "common/base/status_macros.h"
#include "common/cluster/view.h"
#include "common/metrics/duration_histogram.h"
#include "common/metrics/latest_value.h"
#include "common/metrics/member_metrics.h"
#include "common/metrics/metrics_server.h"
#include "common/metrics/process_metrics.h"
#include "common/net/grpc_channel.h"
#include "common/net/grpc_log.h"
#include "common/net/host_port.h"
#include "common/net/host_transport.h"
#include "common/net/zmq_transport.h"
#include "common/runtime/config_file.h"
#include "common/runtime/config_reload.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/exposure.h"
#include "common/runtime/log_level.h"
#include "common/runtime/memory_limit.h"
#include "common/runtime/process_main.h"
#include "common/runtime/process_priority.h"
#include "common/runtime/supervisor_notice.h"
#include "common/runtime/topology_labels.h"
#include "common/security/seal/data_keys.h"
#include "common/security/tls_credentials.h"
#include "common/security/wall_clock.h"
#include "common/store/disk_folder.h"
#include "common/store/store_thread.h"
#include "common/trace/process_trace.h"
#include "server/apply_timer.h"
#include "server/config.h"
#include "server/recording/recorder.h"
#include "server/request_credits.h"
#include "server/server_actor.h"
#include "server/server_metrics.h"
#include "server/shard_actor.h"
#include "server/socket_folder.h"
#include "server/table/cuda_device.h"
#include "server/table/device.h"
#include "server/table/row_file.h"
#include "server/table/row_memory.h"
#include "server/table/table_budget.h"
#include "server/token_bucket.h"

namespace covey::server {
namespace {

constexpr uint32_t kDefaultLoopsMax = 64;
constexpr absl::Duration kLeaveMax = absl::Seconds(3);
// What the end of the process takes at most, when it has left.
constexpr absl::Duration kEndMax = absl::Seconds(12);
// What a data loop may have under way to the store: twice what it sends and reads ahead.
constexpr uint64_t kStoreBytesPerLoop = 8 * kReplicaPieceBytesMax;
// What all data loops may have under way to the recording, in blocks of at least 64 KiB.
constexpr uint64_t kRecordingBytes = 256 << 20;
constexpr size_t kRecordingRequests = 2 * kRecordingBytes / (64 << 10);

// What the metrics show of a data loop.
struct LoopCounts {
  ShardCounters shards;
  DurationHistogram applies{ApplyTimer::kBounds};
  uint64_t replication_lag = 0;
  TransportCounters messages;
  absl::Duration busy;
};

// One thread that serves shards. The order of members lets the loop be destroyed first.
struct DataLoop {
  std::string name;
  // As the metrics read them; set on the loop's thread.
  LatestValue<LoopCounts> counts;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<ShardActor> actor;
  std::unique_ptr<ApplyTimer> timer;
  std::unique_ptr<RequestCredits> credits;
  std::unique_ptr<EventLoop> loop;
};

// The in-process connection from the control loop to the data loops, by loop number.
class DataLoopsPort : public MessagePort {
 public:
  explicit DataLoopsPort(const std::vector<std::unique_ptr<DataLoop>>& loops) : loops_(loops) {}
  void Send(Message message) override {
    const uint32_t number = message.to().loop;
    if (number >= 1 && number <= loops_.size()) {
      loops_[number - 1]->loop->Deliver(std::move(message));
    }
  }

 private:
  const std::vector<std::unique_ptr<DataLoop>>& loops_;
};

// Everything that the process owns, in order of dependency; destroyed in reverse.
class ServerProcess {
 public:
  // `tls`: null = none.
  ServerProcess(const Config& config, std::shared_ptr<const TlsCredentials> tls)
      : config_(config),
        tls_(std::move(tls)),
        incarnation_(RandomFromSystem()),
        job_(JobFingerprint(config.job)),
        tables_(std::make_shared<TableBudget>(TableBytesMax(config))),
        queued_bytes_max_(config.queued_bytes_max),
        current_(config) {}

  // Binds the data loops. UNAVAILABLE: a port is in use.
  absl::Status Open() {
    if (config_.transport == "ipc") {
      COVEY_ASSIGN_OR_RETURN(SocketFolder folder, SocketFolder::Create());
      folder_.emplace(std::move(folder));
    }
    const uint32_t loops =
        config_.loops == 0 ? std::min(UsableCores(), kDefaultLoopsMax) : config_.loops;
    if (tls_ != nullptr) {
      COVEY_ASSIGN_OR_RETURN(keys_, DataKeys::Make(job_));
    }
    std::vector<std::string> endpoints = {""};
    const std::shared_ptr<TokenBucket> rate = MakeRate(config_);
    COVEY_RETURN_IF_ERROR(OpenStore(loops));
    COVEY_RETURN_IF_ERROR(OpenRecording());
    recording_bytes_per_loop_ = kRecordingBytes / loops;
    for (uint32_t number = 1; number <= loops; ++number) {
      COVEY_RETURN_IF_ERROR(OpenDataLoop(number, QueueOf(config_, loops), rate));
      endpoints.push_back(data_loops_.back()->transport->endpoint());
    }
    Advertise(endpoints);
    COVEY_ASSIGN_OR_RETURN(control_transport_, MakeZmqTransport({.keys = keys_}));
    actor_ = std::make_unique<ServerActor>(
        ServerActor::Options{.member = {.job_name = config_.job,
                                        .rank = config_.rank,
                                        .labels = config_.labels,
                                        .endpoints = std::move(endpoints),
                                        .process_id = static_cast<uint64_t>(getpid()),
                                        .host = HostName(),
                                        .data_key = keys_ == nullptr ? "" : keys_->public_key(),
                                        .scheduler = config_.scheduler,
                                        .register_deadline = config_.join_deadline,
                                        .seed = RandomFromSystem(),
                                        .trace = &trace_}});
    actor_->SetTableBytesMax(ToldTableBytesMax(config_));
    actor_->OnChange([this](absl::Time, Outbox&) { MembershipChanged(); });
    control_ =
        std::make_unique<EventLoop>(EventLoop::Options{.job = job_,
                                                       .self = {},
                                                       .incarnation = incarnation_,
                                                       .thread_name = "control",
                                                       .trace = &trace_.AddThread("control")},
                                    *actor_, *control_transport_);
    control_port_ = std::make_unique<LoopPort>(*control_);
    scheduler_ = std::make_unique<GrpcChannel>(
        GrpcChannel::Options{.scheduler = config_.scheduler, .tls = tls_, .job = config_.job},
        [this](Message reply) { control_->Deliver(std::move(reply)); });
    control_->AddPort({kSchedulerNode, 0}, *scheduler_);
    control_->SetDefaultPort(data_loops_port_);
    return StartMetrics();
  }

  // Serves until a signal or the scheduler ends it. OK: left in order. SIGHUP calls `on_hangup`, on
  // this thread.
  absl::Status Run(const std::function<void()>& on_hangup) {
    control_->Start();
    const std::optional<int> signal =
        config_.insecure
            ? WaitForTerminationInsecurely(data_loops_.front()->transport->endpoint(), on_hangup)
            : WaitForTermination(absl::InfiniteDuration(), on_hangup);
    const absl::Duration drain_deadline = current_.drain_deadline;
    NotifyStopping(drain_deadline + kEndMax);
    const std::string reason = absl::StrCat("signal ", signal.value_or(0));
    control_->Post([this, reason, drain_deadline](absl::Time now, Outbox& outbox) {
      leaving_ = true;
      actor_->Leave(now, reason, now + drain_deadline, outbox);
      MembershipChanged();
    });
    over_.WaitFor(drain_deadline + kLeaveMax);
    control_->Stop();
    if (!actor_->hang().ok()) {
      LogError("server_ended", {{"reason", actor_->hang().message()}});
      std::_Exit(1);  // a thread that hangs cannot be waited for
    }
    EndRecordings();
    for (const auto& data_loop : data_loops_) data_loop->loop->Stop();
    if (store_ != nullptr) store_->Stop();
    if (recordings_ != nullptr && !recordings_->Drain(kLeaveMax)) {
      LogWarning("recording_ended", {{"reason", "the disk has not taken all of it in time"}});
    }
    return actor_->member().failure();
  }

  // The settings of Reloadable hold as `next` has them, from now on. In `on_hangup`. UNAVAILABLE:
  // some of the loops have not taken them; to be repeated.
  absl::Status Reload(const Config& next) {
    const bool all = std::exchange(half_reloaded_, true);
    if (all || next.rate_max != current_.rate_max) {
      const std::shared_ptr<TokenBucket> rate = MakeRate(next);
      for (const auto& data_loop : data_loops_) {
        COVEY_RETURN_IF_ERROR(
            Change(*data_loop->loop, [&actor = *data_loop->actor, rate] { actor.SetRate(rate); }));
      }
    }
    if (all || next.queued_bytes_max != current_.queued_bytes_max) {
      const Queue queue = QueueOf(next, data_loops_.size());
      for (const auto& data_loop : data_loops_) {
        COVEY_RETURN_IF_ERROR(Change(*data_loop->loop, [&self = *data_loop, queue] {
          self.actor->SetQueuedBytesMax(queue.waiting_bytes);
          self.credits->SetBudget(queue.arriving_bytes);
        }));
      }
      COVEY_RETURN_IF_ERROR(
          Change(*control_, [this, bytes = next.queued_bytes_max] { queued_bytes_max_ = bytes; }));
    }
    tables_->SetMax(TableBytesMax(next));
    COVEY_RETURN_IF_ERROR(Change(
        *control_, [this, bytes = ToldTableBytesMax(next)] { actor_->SetTableBytesMax(bytes); }));
    ApplyPriority(next.priority);
    current_ = next;
    half_reloaded_ = false;
    return absl::OkStatus();
  }

 private:
  // What may wait in one data loop.
  struct Queue {
    size_t arriving_bytes = 0;  // in requests in flight
    size_t waiting_bytes = 0;
  };
  static Queue QueueOf(const Config& config, size_t loops) {
    const size_t bytes = config.queued_bytes_max / loops;
    return {.arriving_bytes = bytes / 8, .waiting_bytes = bytes - bytes / 8};
  }
  // Null = no limit.
  static std::shared_ptr<TokenBucket> MakeRate(const Config& config) {
    return config.rate_max == 0 ? nullptr : std::make_shared<TokenBucket>(config.rate_max);
  }
  static uint64_t TableBytesMax(const Config& config) {
    if (config.table_bytes_max != 0) return config.table_bytes_max;
    const bool are_in_memory = config.table_memory == "host" && config.row_folder.empty();
    return are_in_memory ? MemoryLimit() / 4 * 3 : TableBudget::kNoLimit;
  }
  // ServerLoad.table_bytes_max.
  static uint64_t ToldTableBytesMax(const Config& config) {
    const uint64_t bytes = TableBytesMax(config);
    return bytes == TableBudget::kNoLimit ? 0 : bytes;
  }
  // Lets a loop change something of its own.
  static absl::Status Change(EventLoop& loop, std::function<void()> change) {
    if (loop.Post([change = std::move(change)](absl::Time, Outbox&) { change(); })) {
      return absl::OkStatus();
    }
    return absl::UnavailableError("a loop has too much to do; send SIGHUP again");
  }

  absl::Status StartMetrics() {
    if (config_.metrics.empty()) return absl::OkStatus();
    COVEY_ASSIGN_OR_RETURN(
        metrics_, MetricsServer::Start(
                      {.address = config_.metrics,
                       .role = "server",
                       .tls = config_.tls,
                       .fill = [this](absl::Time now, MetricPage& page) { AddMetrics(now, page); },
                       .conditions = [this](absl::Time now) { return Conditions(now); }},
                      "control", PostTo(*control_)));
    return absl::OkStatus();
  }

  // On the control loop's thread, as Conditions.
  void AddMetrics(absl::Time now, MetricPage& page) const {
    const Member& member = actor_->member();
    AddMemberMetrics(member, config_.insecure, page);
    page.Gauge("covey_loops", "Threads that serve shards.",
               static_cast<double>(data_loops_.size()));
    AddLoopSilence(actor_->silent_loop(now), page);
    AddMessageMetrics(control_->counters(), page);
    uint64_t lag = 0;
    for (const auto& data_loop : data_loops_) {
      const LoopCounts counts = data_loop->counts.Get();
      AddMessageMetrics(counts.messages, page);
      AddBusyTime(counts.busy, page);
      AddLoopMetrics(counts.shards, counts.applies, page);
      lag = std::max(lag, counts.replication_lag);
    }
    AddReplicationLag(lag, page);
    AddLoadMetrics(actor_->load(), *member.view(), queued_bytes_max_, page);
  }
  std::vector<ReadyCondition> Conditions(absl::Time now) const {
    const Member& member = actor_->member();
    const uint64_t joining = ShardsJoining(*member.view(), member.node());
    std::vector<ReadyCondition> conditions = MemberConditions(member, now);
    conditions.push_back({.name = "shards",
                          .holds = joining == 0,
                          .why = absl::StrCat(joining, " of its shards are still being filled")});
    return conditions;
  }

  absl::Status OpenStore(uint32_t loops) {
    if (config_.store.empty()) return absl::OkStatus();
    COVEY_ASSIGN_OR_RETURN(auto folder,
                           DiskFolder::Open(config_.store, DiskFolder::Missing::kIsCreated));
    store_ = std::make_unique<StoreThread>(
        StoreThread::Options{.queue_bytes_max = loops * kStoreBytesPerLoop}, std::move(folder),
        [this](Message reply) { data_loops_port_.Send(std::move(reply)); });
    return absl::OkStatus();
  }

  absl::Status OpenRecording() {
    if (config_.record.empty()) return absl::OkStatus();
    COVEY_ASSIGN_OR_RETURN(auto folder,
                           DiskFolder::Open(config_.record, DiskFolder::Missing::kIsCreated));
    // Twice what the loops send, which pace themselves.
    recordings_ = std::make_unique<StoreThread>(
        StoreThread::Options{.queue_bytes_max = 2 * kRecordingBytes,
                             .queue_requests_max = kRecordingRequests},
        std::move(folder), [this](Message reply) { data_loops_port_.Send(std::move(reply)); });
    return absl::OkStatus();
  }

  // Precondition: the control loop has stopped.
  void EndRecordings() {
    if (recordings_ == nullptr || !serving_) return;
    for (const auto& data_loop : data_loops_) {
      const SetOnce<std::monostate> ended;
      const bool posted = data_loop->loop->Post(
          [&actor = *data_loop->actor, ended](absl::Time, Outbox& outbox) mutable {
            actor.EndRecording(outbox);
            ended.Set(std::monostate());
          });
      if (posted) ended.WaitFor(kLeaveMax);
    }
  }

  absl::Status OpenDataLoop(uint32_t number, const Queue& queue,
                            const std::shared_ptr<TokenBucket>& rate) {
    auto data_loop = std::make_unique<DataLoop>();
    data_loop->name = absl::StrCat("data-", number);
    const std::string listen =
        folder_
            ? absl::StrCat("ipc://", folder_->path(), "/", number)
            : absl::StrCat("tcp://",
                           HostPort(config_.data_host,
                                    config_.data_port == 0 ? 0 : config_.data_port + number - 1));
    COVEY_ASSIGN_OR_RETURN(
        data_loop->transport,
        MakeHostTransport({.zmq = {.listen = listen, .keys = keys_, .loop = number},
                           .shared_memory = config_.transport == "auto"}));
    std::shared_ptr<Device> device;
    if (config_.table_memory == "cuda") {
      COVEY_ASSIGN_OR_RETURN(device, OpenCudaDevice());
    }
    std::shared_ptr<RowMemory> rows;
    if (!config_.row_folder.empty()) {
      COVEY_ASSIGN_OR_RETURN(rows, RowFile::Create(config_.row_folder));
    }
    data_loop->actor = std::make_unique<ShardActor>(ShardActor::Options{
        .spare_bytes_max = config_.spare_bytes_max,
        .malformed_at_transport =
            [&self = *data_loop] { return self.loop->counters().refused.total(); },
        .queued_bytes_max = queue.waiting_bytes,
        .has_store = store_ != nullptr,
        .recording = RecordingOptions(),
        .device = std::move(device),
        .rows = std::move(rows),
        .rate = rate,
        .tables = tables_});
    data_loop->timer = std::make_unique<ApplyTimer>(*data_loop->actor);
    data_loop->credits = std::make_unique<RequestCredits>(
        queue.arriving_bytes, [&actor = *data_loop->actor](const Message& message) {
          return actor.KnowsSender(message);
        });
    data_loop->loop =
        std::make_unique<EventLoop>(EventLoop::Options{.job = job_,
                                                       .self = {NodeId(), number},
                                                       .incarnation = incarnation_,
                                                       .thread_name = data_loop->name,
                                                       .spin = config_.spin,
                                                       .flow_control = data_loop->credits.get(),
                                                       .trace = &trace_.AddThread(data_loop->name)},
                                    *data_loop->timer, *data_loop->transport);
    data_loops_.push_back(std::move(data_loop));
    return absl::OkStatus();
  }

  std::optional<Recorder::Options> RecordingOptions() const {
    if (recordings_ == nullptr) return std::nullopt;
    return Recorder::Options{.gradients = config_.record_gradients,
                             .bytes_in_flight_max = recording_bytes_per_loop_};
  }

  // By loop number, from 1.
  void Advertise(std::vector<std::string>& endpoints) const {
    if (config_.advertise_data.empty()) return;
    size_t number = 0;
    for (absl::string_view place : absl::StrSplit(config_.advertise_data, ',')) {
      endpoints[++number] = absl::StrCat("tcp://", place);
    }
  }

  // On the control loop's thread.
  void MembershipChanged() {
    const Member& member = actor_->member();
    const Epoch epoch = member.view()->epoch();
    if (keys_ != nullptr) keys_->Follow(member.node(), *member.view());
    if (member.state() == Member::State::kMember) {
      control_->SetIdentity(job_, member.node());
      control_->SetEpoch(epoch);
      if (!serving_) StartDataLoops(member);
      for (const auto& data_loop : data_loops_) {
        EventLoop& loop = *data_loop->loop;
        loop.Post([&loop, epoch](absl::Time, Outbox&) { loop.SetEpoch(epoch); });
      }
    }
    if (actor_->is_over() && !over_.is_set()) {
      over_.Set(std::monostate());
      // A server that was drained without a signal ends as if it had received one. A second one
      // would kill it.
      if (!leaving_) RequestTermination();
    }
  }

  // Data loops wait for the node id, which they need to reach the control loop.
  void StartDataLoops(const Member& member) {
    serving_ = true;
    for (const auto& data_loop : data_loops_) {
      data_loop->loop->SetIdentity(job_, member.node());
      data_loop->loop->AddPort({member.node(), 0}, *control_port_);
      if (store_ != nullptr) data_loop->loop->AddPort({member.node(), kStoreLoop}, *store_);
      if (recordings_ != nullptr) {
        data_loop->loop->AddPort({member.node(), kRecordingLoop}, *recordings_);
      }
      data_loop->loop->Start();
      if (metrics_ == nullptr) continue;
      metrics_->Watch(data_loop->name, PostTo(*data_loop->loop), [&self = *data_loop] {
        self.counts.Set({.shards = self.actor->counters(),
                         .applies = self.timer->times(),
                         .replication_lag = self.actor->replication_lag(),
                         .messages = self.loop->counters(),
                         .busy = self.loop->busy()});
      });
    }
    LogInfo("server_joined", {{"rank", member.rank()},
                              {"id", member.node().value()},
                              {"loops", data_loops_.size()},
                              {"table_memory", config_.table_memory},
                              {"table_bytes_max", TableBytesMax(config_)},
                              {"endpoint", data_loops_.front()->transport->endpoint()}});
    NotifyReady(absl::StrCat("server ", member.rank(), " of job ", config_.job, ", listening on ",
                             data_loops_.front()->transport->endpoint()));
  }

  const Config config_;
  const std::shared_ptr<const TlsCredentials> tls_;
  const Incarnation incarnation_;
  const uint64_t job_;
  ProcessTrace trace_{RandomFromSystem()};
  std::optional<SocketFolder> folder_;
  std::shared_ptr<DataKeys> keys_;  // null = messages are not sealed
  const std::shared_ptr<TableBudget> tables_;
  std::vector<std::unique_ptr<DataLoop>> data_loops_;
  DataLoopsPort data_loops_port_{data_loops_};
  std::unique_ptr<StoreThread> store_;  // null = none
  std::unique_ptr<StoreThread> recordings_;
  uint64_t recording_bytes_per_loop_ = 0;
  std::unique_ptr<Transport> control_transport_;
  std::unique_ptr<ServerActor> actor_;
  std::unique_ptr<EventLoop> control_;
  std::unique_ptr<LoopPort> control_port_;
  std::unique_ptr<GrpcChannel> scheduler_;
  std::unique_ptr<MetricsServer> metrics_;  // null = none
  const SetOnce<std::monostate> over_;      // set when this process is no longer a member

  // Owned by the control loop's thread.
  uint64_t queued_bytes_max_;
  bool serving_ = false;
  bool leaving_ = false;

  // Owned by the thread of Run.
  Config current_;              // the settings as they are now
  bool half_reloaded_ = false;  // some loops may have others
};

int ExitCode(const absl::Status& status) {
  if (status.ok()) return 0;
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ? 3 : 1;
}

// What may change while the server runs.
std::vector<ConfigReload::Setting> Reloadable() {
  return {
      {"queued-bytes-max"}, {"rate-max"},  {"table-bytes-max"},
      {"priority", "low"},  {"log-level"}, {"drain-deadline"},
  };
}

// The settings of a server and where they come from.
struct Settings {
  Settings() { Declare(); }
  Settings(const Settings&) = delete;

  Config config;
  bool validate_only = false;
  ConfigFile options{"covey_server", "Holds shards of tables and applies the pushes of workers."};

 private:
  void Declare();
};

void Settings::Declare() {
  options.Add("scheduler", &config.scheduler, "HOST:PORT[,HOST:PORT] of the scheduler");
  options.Add("job", &config.job, "name of the job; must equal the scheduler's");
  options.Add("rank", &config.rank, "wanted rank among the servers; -1 = any");
  options.Add("labels", &config.labels,
              "zone/rack/host/device; by default what Slurm, Kubernetes or the host say");
  options.Add(
      "transport", &config.transport,
      "how tensors travel: auto (shared memory on one host, TCP between hosts), tcp or ipc");
  options.Add("tls", &config.tls,
              "folder of this server's certificate (covey certificates issue --role server); empty "
              "= none");
  options.Add("data-host", &config.data_host,
              "address at which workers reach this server; one that other hosts reach needs --tls "
              "or --insecure");
  options.Add("insecure", &config.insecure,
              "listen without --tls although other hosts reach the address");
  options.Add("metrics", &config.metrics, MetricsServer::kHelp);
  options.Add("data-port", &config.data_port, "port of the first data loop; 0 = any free port");
  options.Add("advertise-data", &config.advertise_data,
              "HOST:PORT[,HOST:PORT], one per data loop: where others reach it, if that differs");
  options.Add("table-memory", &config.table_memory,
              "where the tables are: host, or cuda (the memory of a GPU)");
  options.Add("row-folder", &config.row_folder,
              "folder of a local disk for the rows of sparse tables, which may then be larger than "
              "the memory; empty = in memory");
  options.Add("store", &config.store,
              "folder in which snapshots are stored, shared with the scheduler and other servers; "
              "empty = none");
  options.Add("record", &config.record,
              "folder in which the order of updates is recorded, with their gradients, for covey "
              "replay; empty = none");
  options.Add("record-gradients", &config.record_gradients,
              "record the gradients, too; without them a recording shows the order alone");
  options.Add("loops", &config.loops, "threads that serve shards; 0 = one per core");
  options.Add("spin", &config.spin, "how long a data loop spins before it sleeps");
  options.Add("spare-bytes-max", ConfigFile::Bytes{&config.spare_bytes_max},
              "memory kept per data loop for updates while old values are still being sent");
  options.Add("queued-bytes-max", ConfigFile::Bytes{&config.queued_bytes_max},
              Reloads("memory for all waiting requests; beyond it clients are told to retry "
                      "later"));
  options.Add(
      "rate-max", ConfigFile::Bytes{&config.rate_max},
      Reloads("bytes of tensors per second that this server may receive and send; beyond it "
              "clients are told to retry later; 0 = no limit"));
  options.Add("table-bytes-max", ConfigFile::Bytes{&config.table_bytes_max},
              Reloads("bytes that the tables may take; what does not fit is refused; 0 = three "
                      "quarters of the memory that the process may have"));
  AddPriority(options, &config.priority);
  AddLogLevel(options, &config.log_level);
  options.Add("drain-deadline", &config.drain_deadline,
              Reloads("how long to go on serving after a signal while the shards move "
                      "elsewhere"));
  options.Add("join-deadline", &config.join_deadline, "give up joining after this duration");
  options.Add("validate-only", &validate_only,
              "check these settings and the certificate, and start nothing");
}

// Checks all settings and puts in those that the host and the certificate know; null: no TLS.
absl::StatusOr<std::shared_ptr<const TlsCredentials>> Complete(Config& config) {
  COVEY_RETURN_IF_ERROR(config.Validate());
  COVEY_ASSIGN_OR_RETURN(config.labels, FindTopologyLabels(config.labels));
  COVEY_RETURN_IF_ERROR(MetricsServer::Check(config.metrics, !config.tls.empty(), config.insecure));
  COVEY_ASSIGN_OR_RETURN(
      auto tls,
      LoadTlsCredentials(config.tls,
                         {.role = IdentityRole::kServer, .job = config.job, .rank = config.rank},
                         WallClockNow()));
  if (tls != nullptr) config.rank = tls->RankOr(IdentityRole::kServer, config.rank);
  config.insecure = config.insecure && !IsLoopback(config.data_host);
  return tls;
}

// SIGHUP.
void Reload(ConfigReload& reload, ServerProcess& process) {
  Settings read;
  Settings next;
  absl::Status status = reload.Read(read.options, next.options);
  if (status.ok()) status = Complete(read.config).status();
  if (status.ok()) status = ConfigReload::Together(next.config.Validate());
  if (status.ok()) status = process.Reload(next.config);
  reload.Finish(status, next.config.log_level);
}

int Main(int argc, const char* const* argv) {
  HoldHangups();
  Settings settings;
  if (const std::optional<int> code = settings.options.LoadForMain(argc, argv)) return *code;
  ConfigReload reload(settings.options, Reloadable(), argc, argv);
  Config& config = settings.config;
  InitProcess(config.rank < 0 ? "server" : absl::StrCat("server-", config.rank));
  SetLogLevel(config.log_level);
  TakeLogOfGrpc();
  AllowManyConnections();
  ApplyPriority(config.priority);
  const auto tls = Complete(config);
  if (!tls.ok()) {
    LogError("server_config", {{"reason", tls.status().message()}});
    return 2;
  }
  if (config.transport != "ipc" && config.advertise_data.empty()) {
    WarnIfOutOfReach("--data-host", config.data_host, config.scheduler);
  }
  if (settings.validate_only) {
    LogInfo("settings_valid");
    return 0;
  }
  ServerProcess process(config, *tls);
  if (const absl::Status status = process.Open(); !status.ok()) {
    LogError("server_not_started", {{"reason", status.message()}});
    return 1;
  }
  const absl::Status status =
      WithReason(process.Run([&] { Reload(reload, process); }), tls->get(), WallClockNow());
  if (status.ok()) {
    LogInfo("server_left");
  } else {
    LogError("server_ended", {{"reason", status.message()}});
  }
  return ExitCode(status);
}

}  // namespace
}  // namespace covey::server

int main(int argc, char** argv) { return covey::server::Main(argc, argv); }
