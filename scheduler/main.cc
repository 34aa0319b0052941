// SPDX-License-Identifier: Apache-2.0

// The scheduler's process: puts the actor on a loop between gRPC and the log. Read top to bottom.

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/base/set_once.h"
#include "common/base/status_macros.h"
#include "common/cluster/view.h"
#include "common/grouping/group_count.h"
#include "common/grouping/stragglers/straggler_options.h"
#include "common/grouping/stragglers/straggler_rung.h"
#include "common/metrics/metrics_server.h"
#include "common/metrics/process_metrics.h"
#include "common/net/host_port.h"
#include "common/runtime/config_file.h"
#include "common/runtime/config_reload.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/exposure.h"
#include "common/runtime/log_level.h"
#include "common/runtime/process_main.h"
#include "common/runtime/process_priority.h"
#include "common/runtime/supervisor_notice.h"
#include "common/security/tls_credentials.h"
#include "common/snapshot/snapshot_reader.h"
#include "common/store/disk_folder.h"
#include "common/store/store_thread.h"
#include "common/trace/process_trace.h"
#include "scheduler/audit_trail.h"
#include "scheduler/config.h"
#include "scheduler/log/log_backend.h"
#include "scheduler/log/standby.h"
#include "scheduler/nodes/prober.h"
#include "scheduler/port_file.h"
#include "scheduler/rpc/grpc_service.h"
#include "scheduler/scheduler_actor.h"
#include "scheduler/scheduler_metrics.h"
#include "scheduler/snapshots/initial_values.h"
#include "scheduler/snapshots/restored_job.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
// What the end of the process takes at most, when no server is waited for any more.
constexpr absl::Duration kEndMax = absl::Seconds(10);
// Value of --resume.
constexpr char kResumeIfAny[] = "if-any";

// Settings of the process besides the actor's configuration.
struct ProcessConfig {
  LogBackend::Options log;
  // "host:port,host:port"
  std::string etcd;
  // The address under which other processes reach this scheduler; empty = `host`, or this machine's
  // name when `host` means any address.
  std::string advertise;
  // MetricsServer::Options::address; empty = none.
  std::string metrics;
  bool has_reflection = false;
};

std::string AddressOf(const Config& config, const ProcessConfig& process, uint32_t port) {
  if (!process.advertise.empty()) return process.advertise;
  const bool any = config.host.empty() || config.host == "0.0.0.0" || config.host == "::" ||
                   config.host == "[::]";
  return HostPort(any ? HostName() : config.host, port);
}

// The state with which a new job continues a snapshot of the store; nothing = there is none, and
// that is no mistake.
absl::StatusOr<std::optional<proto::LogRecord>> StateOfSnapshot(const Config& config,
                                                                Folder& store) {
  const bool is_optional = config.resume == kResumeIfAny;
  const absl::StatusOr<std::string> folder =
      FindSnapshot(store, is_optional ? kNewestSnapshot : config.resume);
  if (is_optional && absl::IsNotFound(folder.status())) return std::nullopt;
  if (!folder.ok()) return Annotate("resume", folder.status());
  COVEY_ASSIGN_OR_RETURN(const SnapshotReader snapshot, SnapshotReader::Open(store, *folder));
  return RestoredJob(config.job(), snapshot.manifest());
}

// The state with which a new job begins that continues a snapshot of the store, or takes initial
// values from one; nothing when it does neither.
absl::StatusOr<std::optional<proto::LogRecord>> StateFromStore(const Config& config,
                                                               Folder& store) {
  std::optional<proto::LogRecord> state;
  if (!config.resume.empty()) {
    COVEY_ASSIGN_OR_RETURN(state, StateOfSnapshot(config, store));
  }
  if (config.initial_values.empty()) return state;
  const auto choice = InitialValuesChoice::Parse(config.initial_values);
  const absl::StatusOr<std::string> folder = FindSnapshot(store, choice.snapshot);
  if (!folder.ok()) return Annotate("initial-values", folder.status());
  COVEY_ASSIGN_OR_RETURN(const SnapshotReader snapshot, SnapshotReader::Open(store, *folder));
  COVEY_ASSIGN_OR_RETURN(proto::InitialValues values, InitialValuesOf(choice, snapshot.manifest()));
  if (!state) state = NewJob(config.job());
  *state->mutable_initial_values() = std::move(values);
  return state;
}

// Whether the tables that there are keep the job's promise.
absl::Status CheckTables(const JobDurability& durability, const proto::LogRecord& state) {
  for (const auto* tables : {&state.view().tables(), &state.restore().tables()}) {
    for (const proto::Table& table : *tables) {
      COVEY_RETURN_IF_ERROR(durability.CheckTable(table.spec()));
    }
  }
  return absl::OkStatus();
}

void LogAudit(const AuditEntry& entry) {
  LogLine(entry.outcome.ok() ? LogLevel::kInfo : LogLevel::kWarning, "audit",
          {{"who", entry.who},
           {"call", entry.call},
           {"target", entry.target},
           {"outcome", entry.outcome.ok() ? "allowed" : entry.outcome.message()},
           {"repeated", entry.repeated}});
}

// `actor`: null while another scheduler leads.
void AddMetrics(const Config& config, const SchedulerActor* actor, const GrpcService& service,
                absl::Time now, MetricPage& page) {
  SchedulerMetrics metrics{.leads = actor != nullptr,
                           .expected_servers = config.servers,
                           .expected_workers = config.workers(),
                           .denied_for_certificate = service.callers_refused()};
  if (actor != nullptr) {
    metrics.status = actor->Status(now);
    metrics.events = actor->event_counts();
    metrics.log_writes = actor->log_write_times();
    metrics.snapshot_parts = actor->snapshot_part_times();
    metrics.denied_for_right = actor->denied();
  }
  page.Gauge("covey_insecure", "1 if everybody who reaches the process may take part in the job.",
             config.insecure ? 1 : 0);
  metrics.AddTo(page);
}

std::vector<ReadyCondition> Conditions(const Standby& front, const SchedulerActor* actor) {
  const absl::Status log = actor == nullptr ? absl::OkStatus() : actor->disk_failure();
  return {{.name = "leads", .holds = front.leads(), .why = front.reason()},
          {.name = "log_writable", .holds = log.ok(), .why = std::string(log.message())}};
}

// Applies the settings of Reloadable; UNAVAILABLE: it has to be repeated.
using ApplySettings = absl::FunctionRef<absl::Status(const Config& next)>;

// `reload`: called at SIGHUP.
absl::Status Run(const Config& config, const ProcessConfig& process,
                 const std::shared_ptr<const TlsCredentials>& tls,
                 absl::FunctionRef<void(ApplySettings apply)> reload) {
  // As they are now; for the loop's thread, and for this one.
  Config current = config;
  absl::Duration drain_deadline = config.drain_deadline;
  std::optional<SchedulerActor> actor;
  Standby front;
  Prober prober({});
  ProcessTrace trace(RandomFromSystem());
  EventLoop loop({.job = JobFingerprint(config.job_name),
                  .self = {kSchedulerNode, 0},
                  .incarnation = Incarnation(RandomFromSystem() | 1),
                  .thread_name = "scheduler",
                  .trace = &trace.AddThread("scheduler")},
                 front, prober);
  std::unique_ptr<StoreThread> store;
  std::optional<proto::LogRecord> first;
  if (!config.store.empty()) {
    COVEY_ASSIGN_OR_RETURN(auto folder,
                           DiskFolder::Open(config.store, DiskFolder::Missing::kIsCreated));
    COVEY_ASSIGN_OR_RETURN(first, StateFromStore(config, *folder));
    store =
        std::make_unique<StoreThread>(StoreThread::Options(), std::move(folder),
                                      [&loop](Message reply) { loop.Deliver(std::move(reply)); });
    loop.AddPort({kSchedulerNode, kStoreLoop}, *store);
  }
  std::unique_ptr<GrpcService> service;
  absl::Status failure;
  absl::Time leads_until = absl::InfiniteFuture();  // for the loop's thread
  // On the loop's thread, or before it has started.
  const auto lead = [&](LogBackend::Recovered recovered) {
    if (recovered) {
      LogInfo("recovered", {{"record", recovered->index()}, {"epoch", recovered->view().epoch()}});
      if (first) LogInfo("not_resumed", {{"reason", "the log continues a job already"}});
    } else if (first) {
      recovered = first;
      if (first->has_restore()) LogInfo("resumes", {{"snapshot", first->restore().folder()}});
      if (first->has_initial_values()) {
        LogInfo("initial_values", {{"snapshot", first->initial_values().folder()},
                                   {"tables", first->initial_values().tables().size()}});
      }
    }
    if (recovered) failure.Update(CheckTables(config.durability, *recovered));
    if (!failure.ok()) return RequestTermination();
    Config dated = current;
    dated.wall_clock_ahead = absl::Now() - MonotonicNow();
    dated.trace = &trace;
    dated.own_host = HostName();
    actor.emplace(dated, std::move(recovered));
    actor->SetLeadsUntil(leads_until);
    actor->OnLoss([&failure](const std::string& why) {
      failure = absl::AbortedError(absl::StrCat(
          why,
          ". Start the job again with a new --log-file, and with --resume latest if there is a "
          "snapshot; two replicas, or --snapshot-every, keep such tables"));
      RequestTermination();
    });
    actor->OnDecision([](const std::string& text) { LogInfo("decision", {{"text", text}}); });
    actor->OnAudit(LogAudit);
    front.Lead(*actor);
    service->SetServing();
  };

  COVEY_ASSIGN_OR_RETURN(
      const std::unique_ptr<LogBackend> log,
      LogBackend::Open(process.log, {.leads =
                                         [&](LogBackend::Recovered recovered) {
                                           LogInfo("leads");
                                           const bool posted =
                                               loop.Post([&lead, recovered = std::move(recovered)](
                                                             absl::Time, Outbox&) mutable {
                                                 lead(std::move(recovered));
                                               });
                                           if (!posted) RequestTermination();
                                         },
                                     .leads_until =
                                         [&](absl::Time until) {
                                           loop.Post([&, until](absl::Time, Outbox&) {
                                             leads_until = until;
                                             if (actor) actor->SetLeadsUntil(until);
                                           });
                                         },
                                     .stands_by =
                                         [&](const std::string& reason) {
                                           loop.Post([&front, reason](absl::Time, Outbox&) {
                                             if (front.reason() == reason) return;
                                             LogInfo("stands_by", {{"reason", reason}});
                                             front.Explain(reason);
                                           });
                                         },
                                     .failed =
                                         [&](const absl::Status& status) {
                                           if (failure.ok()) failure = status;
                                           RequestTermination();
                                         }}));
  loop.AddPort({kSchedulerNode, kDiskLoop}, log->port());
  loop.AddPort({kSchedulerNode, kProbeLoop}, prober);

  COVEY_ASSIGN_OR_RETURN(service, GrpcService::Start({.host = config.host,
                                                      .port = config.port,
                                                      .leads = [&] { return front.leads(); },
                                                      .tls = tls,
                                                      .has_reflection = process.has_reflection},
                                                     front, loop));
  loop.SetDefaultPort(*service);
  if (auto recovered = log->Start(AddressOf(config, process, service->port()), loop, front)) {
    lead(*std::move(recovered));
  }
  loop.Start();
  LogInfo(absl::StrCat("listening on ", HostPort(config.host, service->port())),
          {{"job", config.job_name},
           {"servers", config.servers},
           {"groups", GroupCountText(config.groups, config.plans_groups)},
           {"workers", config.workers()}});
  absl::Status outcome;
  if (!config.port_file.empty()) outcome = WritePortFile(config.port_file, service->port());
  std::unique_ptr<MetricsServer> metrics;
  if (outcome.ok() && !process.metrics.empty()) {
    auto started = MetricsServer::Start(
        {.address = process.metrics,
         .role = "scheduler",
         .tls = config.tls,
         .fill =
             [&](absl::Time now, MetricPage& page) {
               AddBusyTime(loop.busy(), page);
               AddMetrics(config, actor ? &*actor : nullptr, *service, now, page);
             },
         .conditions = [&](absl::Time) { return Conditions(front, actor ? &*actor : nullptr); }},
        "scheduler", PostTo(loop));
    outcome = started.status();
    if (started.ok()) metrics = *std::move(started);
  }

  if (outcome.ok()) {
    NotifyReady(absl::StrCat("job ", config.job_name, ", listening on ",
                             HostPort(config.host, service->port())));
    const auto apply = [&](const Config& next) {
      const bool posted = loop.Post([&current, &actor, next](absl::Time, Outbox&) {
        current = next;
        if (actor) actor->SetOptions(next);
      });
      if (!posted) return absl::UnavailableError("the loop has too much to do; send SIGHUP again");
      ApplyPriority(next.priority);
      drain_deadline = next.drain_deadline;
      return absl::OkStatus();
    };
    const auto on_hangup = [&] { reload(apply); };
    const std::optional<int> signal =
        config.insecure
            ? WaitForTerminationInsecurely(HostPort(config.host, service->port()), on_hangup)
            : WaitForTermination(absl::InfiniteDuration(), on_hangup);
    LogInfo("stopping", {{"signal", signal.value_or(0)}});
    NotifyStopping(drain_deadline + kEndMax);
    const SetOnce<std::monostate> may_end;
    const bool posted = loop.Post([&front, &actor, may_end](absl::Time now, Outbox& outbox) {
      if (!front.leads()) return may_end.Set(std::monostate());
      actor->Stop(
          now, [may_end] { may_end.Set(std::monostate()); }, outbox);
    });
    if (posted) may_end.WaitFor(drain_deadline);
  }
  service->Shutdown();
  loop.Stop();
  if (store != nullptr) store->Stop();
  log->Stop();
  return outcome.ok() ? failure : outcome;
}

void DeclareStragglers(StragglerOptions& stragglers, ConfigFile& options) {
  options.Add(
      "stragglers",
      [&stragglers](absl::string_view text) {
        COVEY_ASSIGN_OR_RETURN(stragglers.highest, ParseStragglerRung(text));
        return absl::OkStatus();
      },
      [&stragglers] { return std::string(StragglerRungName(stragglers.highest)); },
      Reloads(
          "strongest measure against slow workers; each includes the ones before it: off, observe, "
          "shift (samples to faster workers), partial (do not wait for late workers), regroup, "
          "evict"));
  options.Add(
      "straggler-ratio", &stragglers.slow_ratio,
      Reloads("how many times the median of its group a worker takes per sample to count as slow"));
  options.Add("straggler-probation", &stragglers.probation,
              Reloads("how long an evicted worker waits until it may try again"));
  options.Add("partial-reduce-minimum", &stragglers.partial_minimum,
              Reloads("how many members a group with late members waits for; 0 = all that are "
                      "in time, at least half"));
  options.Add("partial-reduce-grace", &stragglers.partial_grace,
              Reloads("how much longer the group waits for the others; 0 = half the usual step"));
  options.Add("group-members-min", &stragglers.group_members_min,
              Reloads("the straggler ladder never makes a group smaller than this"));
}

void DeclareLog(Config& config, ProcessConfig& process, ConfigFile& options) {
  options.Add("log-file", &config.log_file,
              "durable log of decisions, read at a restart; empty = the job is lost at a restart");
  options.Add("etcd", &process.etcd,
              "HOST:PORT[,HOST:PORT] of an etcd cluster that keeps the log instead of a file; of "
              "several schedulers of the job one leads, the others stand by");
  options.Add("etcd-prefix", &process.log.etcd_prefix,
              "where in etcd the log is; empty = covey/JOB");
  options.Add(
      "etcd-lease", &process.log.etcd_lease,
      "lease term of the leader: etcd replaces a leader that is silent for longer; etcd's own "
      "minimum is 2s");
  options.Add("advertise", &process.advertise,
              "HOST:PORT at which others reach this scheduler; empty = the address it listens at");
}

// Values of --on-loss.
constexpr std::pair<absl::string_view, OnLoss> kOnLoss[] = {
    {"restore", OnLoss::kRestore}, {"begin-anew", OnLoss::kBeginAnew}, {"stop", OnLoss::kStop}};

void DeclareOnLoss(OnLoss& field, ConfigFile& options) {
  options.Add(
      "on-loss",
      [&field](absl::string_view text) {
        for (const auto& [name, value] : kOnLoss) {
          if (text != name) continue;
          field = value;
          return absl::OkStatus();
        }
        return absl::InvalidArgumentError("no measure; choose restore, begin-anew or stop");
      },
      [&field] {
        for (const auto& [name, value] : kOnLoss) {
          if (field == value) return std::string(name);
        }
        return std::string();
      },
      Reloads(
          "when no server has the content of a shard any more: restore (it begins with its part of "
          "the newest snapshot; where there is none, with the table's first values), begin-anew "
          "(with the table's first values) or stop (the job ends, to be resumed from a snapshot). "
          "A lost "
          "shard whose first values a program gave, and no snapshot has, always ends the job"));
}

void DeclareSnapshots(Config& config, ConfigFile& options) {
  options.Add(
      "durability", [&config](absl::string_view text) { return config.SetDurability(text); },
      [&config] { return config.durability.Show(); },
      "what the job may lose: memory (what only servers hold is lost with them), replicated (every "
      "table has two replicas or more), or flushed:2s (all updates are in the store about 2 s "
      "after they were applied)");
  DeclareOnLoss(config.on_loss, options);
  options.Add("store", &config.store,
              "folder in which snapshots are stored, shared with all servers; empty = none");
  options.Add("resume", &config.resume,
              "snapshot that a new job continues: latest, its id or its name; if-any = the latest, "
              "or a new job where there is none. A job that --log-file continues ignores it");
  options.Add(
      "initial-values", &config.initial_values,
      "SNAPSHOT[,TABLE...] of the store with whose values new tables begin in place of their "
      "initializers: all of its tables, or only those named");
  options.Add(
      "snapshot-every", [&config](absl::string_view text) { return config.SetSnapshotEvery(text); },
      [&config] { return config.SnapshotEvery(); },
      Reloads("how often a snapshot is made: a duration like 10min, a number of examples like "
              "1e6samples, or both with a comma between; empty = only when asked for"));
  options.Add("snapshots-kept", &config.snapshots_kept,
              Reloads("complete snapshots that stay in the store; older ones are removed"));
  options.Add(
      "feedback-flush-steps", &config.feedback_flush_steps,
      "with a store: at each multiple of this step, gradients with error feedback travel as "
      "float32 with all that was kept; snapshots of bsp and ssp tables are cut there. 0 = "
      "never. A job that continues another one keeps the other's");
  options.Add(
      "drain-deadline", &config.drain_deadline,
      Reloads("with a store: how long to go on after a signal while servers leave, too, and the "
              "job's last state goes into a snapshot"));
  options.Add("snapshot-deadline", &config.snapshot_deadline,
              Reloads("a snapshot that takes longer is given up"));
}

void Declare(Config& config, ConfigFile& options) {
  options.Add("job", &config.job_name, "name of the job; every process that joins must give it");
  options.Add("servers", &config.servers, "servers to wait for");
  options.Add(
      "groups",
      [&config](absl::string_view text) {
        return ParseGroupCount(text, config.groups, config.plans_groups);
      },
      [&config] { return GroupCountText(config.groups, config.plans_groups); },
      "groups of workers to form; auto = as many as make most progress, by the speeds and links "
      "that are measured (covey plan shows why)");
  options.Add("workers", &config.workers_per_group,
              "workers in each group; with --groups auto, all workers");
  options.Add("heartbeat", &config.heartbeat, "interval at which nodes send heartbeats");
  options.Add("silence-min", &config.silence_min,
              "no node is declared dead after less silence than this");
  options.Add(
      "restart-grace", &config.restart_grace,
      "after a restart, how long the nodes of the recovered view have for a first heartbeat");
  options.Add(
      "elastic", &config.elastic,
      "accept servers and workers beyond the expected ones, and place workers that register late");
  options.Add(
      "placement-wait", &config.placement_wait,
      Reloads(
          "how long a late worker waits for others to form a new group with, before it joins one"));
  options.Add(
      "replacement-wait", &config.replacement_wait,
      Reloads("how long to wait for a lost server to return before its shards are re-initialized "
              "elsewhere"));
  options.Add(
      "lease", &config.lease,
      "how long a server that alone holds a shard serves it without a reply from this scheduler");
  options.Add("regroup-after", &config.regroup_after,
              Reloads("how long after a member has left its group re-forms without it"));
  DeclareStragglers(config.stragglers, options);
  DeclareSnapshots(config, options);
  options.Add(
      "contract-fallback", &config.contract_fallback,
      Reloads(
          "give tables whose momentum asynchrony raises above their target a buffered contract"));
  options.Add("host", &config.host,
              "address to listen at; one that other hosts reach needs --tls or --insecure");
  options.Add("tls", &config.tls,
              "folder of this scheduler's certificate (covey certificates issue --role scheduler): "
              "callers must show theirs; empty = they need none");
  options.Add("insecure", &config.insecure,
              "listen without --tls although other hosts reach the address: whoever does may do "
              "everything");
  options.Add("port", &config.port, "port to listen at; 0 = any free port");
  AddPriority(options, &config.priority);
  AddLogLevel(options, &config.log_level);
  options.Add("port-file", &config.port_file, "file to which the chosen port is written");
}

// gRPC 1.51 accepts TLS 1.2, too, and has no setting against it but the list of ciphers for that
// version. This list has one that needs a key of both ends, of which there is none; the ciphers of
// TLS 1.3 are another list. To be called before gRPC is used.
void RefuseTls12() {
  COVEY_CHECK(setenv("GRPC_SSL_CIPHER_SUITES", "PSK-AES128-GCM-SHA256", /*overwrite=*/1) == 0);
}

// What may change while the scheduler runs.
std::vector<ConfigReload::Setting> Reloadable() {
  return {
      {"stragglers"},
      {"straggler-ratio"},
      {"straggler-probation"},
      {"partial-reduce-minimum"},
      {"partial-reduce-grace"},
      {"group-members-min"},
      {"placement-wait"},
      {"regroup-after"},
      {"replacement-wait"},
      {"on-loss"},
      {"snapshot-every"},
      {"snapshots-kept"},
      {"snapshot-deadline"},
      {"contract-fallback"},
      {"drain-deadline"},
      {"priority", "low"},
      {"log-level"},
  };
}

// The settings of a scheduler and where they come from.
struct Settings {
  Settings();
  Settings(const Settings&) = delete;

  Config config;
  ProcessConfig process;
  bool validate_only = false;
  ConfigFile options{"covey_scheduler",
                     "Decides which nodes are in the cluster, and which server holds which shard."};
};

Settings::Settings() {
  Declare(config, options);
  options.Add("metrics", &process.metrics, MetricsServer::kHelp);
  options.Add("reflection", &process.has_reflection,
              "serve gRPC's reflection, by which tools read the service's definition");
  DeclareLog(config, process, options);
  options.Add("validate-only", &validate_only,
              "check these settings and the certificate, and start nothing");
}

// Checks all settings and puts in those that follow from others; null: no TLS.
absl::StatusOr<std::shared_ptr<const TlsCredentials>> Complete(Settings& settings) {
  Config& config = settings.config;
  ProcessConfig& process = settings.process;
  COVEY_RETURN_IF_ERROR(config.Validate());
  COVEY_ASSIGN_OR_RETURN(
      auto tls,
      LoadTlsCredentials(config.tls, {.role = IdentityRole::kScheduler, .job = config.job_name},
                         absl::Now()));
  COVEY_RETURN_IF_ERROR(CheckExposure({.setting = "--host",
                                       .host = config.host,
                                       .is_secured = !config.tls.empty(),
                                       .is_insecure = config.insecure}));
  COVEY_RETURN_IF_ERROR(
      MetricsServer::Check(process.metrics, !config.tls.empty(), config.insecure));
  process.log.job_name = config.job_name;
  process.log.file = config.log_file;
  process.log.etcd = absl::StrSplit(process.etcd, ',', absl::SkipWhitespace());
  COVEY_RETURN_IF_ERROR(process.log.Validate());
  if (tls != nullptr) config.identity = tls->identity();
  config.insecure = config.insecure && !IsLoopback(config.host);
  return tls;
}

// SIGHUP. `config`: with which the scheduler was started.
void Reload(ConfigReload& reload, const Config& config, ApplySettings apply) {
  Settings read;
  Settings next;
  absl::Status status = reload.Read(read.options, next.options);
  if (status.ok()) status = Complete(read).status();
  if (status.ok()) status = ConfigReload::Together(next.config.Validate());
  next.config.run = config.run;
  next.config.identity = config.identity;
  next.config.insecure = config.insecure;
  if (status.ok()) status = apply(next.config);
  reload.Finish(status, next.config.log_level);
}

int Main(int argc, char** argv) {
  HoldHangups();
  Settings settings;
  if (const std::optional<int> code = settings.options.LoadForMain(argc, argv)) return *code;
  ConfigReload reload(settings.options, Reloadable(), argc, argv);
  Config& config = settings.config;
  InitProcess("scheduler");
  SetLogLevel(config.log_level);
  ApplyPriority(config.priority);
  config.run = RandomFromSystem() | 1;
  RefuseTls12();
  AllowManyConnections();
  const auto tls = Complete(settings);
  if (!tls.ok()) {
    LogError("bad_configuration", {{"error", tls.status().message()}});
    return kExitUsage;
  }
  if (settings.validate_only) {
    LogInfo("settings_valid");
    return EXIT_SUCCESS;
  }
  const absl::Status status = Run(config, settings.process, *tls,
                                  [&](ApplySettings apply) { Reload(reload, config, apply); });
  if (!status.ok()) {
    LogError("failed", {{"error", status.message()}});
    return kExitFailed;
  }
  LogInfo("stopped");
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace covey::scheduler

int main(int argc, char** argv) { return covey::scheduler::Main(argc, argv); }
