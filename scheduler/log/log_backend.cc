// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/log_backend.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/net/host_port.h"
#include "common/net/loopback_transport.h"
#include "scheduler/log/etcd/etcd_log.h"
#include "scheduler/log/file_log.h"
#include "scheduler/log/os_log_folder.h"
#include "scheduler/log/reliable_port.h"

namespace covey::scheduler {
namespace {

// FileLog or NullLog: writes on the loop's own thread, and leads from the start.
template <typename Log>
class LocalBackend : public LogBackend {
 public:
  LocalBackend(std::unique_ptr<Log> log, Recovered recovered)
      : log_(std::move(log)), recovered_(std::move(recovered)) {}

  MessagePort& port() override { return *log_; }
  std::optional<Recovered> Start(const std::string&, EventLoop&, Standby& front) override {
    log_->SetReceiver([&front](Message message) { front.DeliverNext(std::move(message)); });
    return std::move(recovered_);
  }
  void Stop() override {}

 private:
  const std::unique_ptr<Log> log_;
  Recovered recovered_;
};

// A loop of its own, which waits for etcd.
class EtcdBackend : public LogBackend, private MessagePort {
 public:
  EtcdBackend(Options options, Events events)
      : options_(std::move(options)), events_(std::move(events)) {}
  ~EtcdBackend() override { Stop(); }

  MessagePort& port() override { return *this; }

  std::optional<Recovered> Start(const std::string& address, EventLoop& loop, Standby&) override {
    log_ = std::make_unique<EtcdLog>(
        EtcdStore::Options{.endpoints = options_.etcd,
                           .prefix = options_.etcd_prefix.empty()
                                         ? absl::StrCat("covey/", options_.job_name)
                                         : options_.etcd_prefix,
                           .address = address,
                           .lease = options_.etcd_lease},
        EtcdLog::Events{.leads = [this](Recovered recovered) { Lead(std::move(recovered)); },
                        .leads_until = events_.leads_until,
                        .stands_by = events_.stands_by,
                        .lost = events_.failed});
    scheduler_ = std::make_unique<ReliablePort>(*log_, loop);
    loop_ = std::make_unique<EventLoop>(
        EventLoop::Options{.self = {kSchedulerNode, kDiskLoop}, .thread_name = "etcd"}, *scheduler_,
        *nowhere_);
    loop_->AddPort({kSchedulerNode, 0}, *scheduler_);
    loop_->Start();
    return std::nullopt;
  }

  void Stop() override {
    if (loop_ == nullptr) return;
    loop_->Stop();
    log_->Resign();
    loop_.reset();
  }

 private:
  // Before Start no scheduler leads, and nothing is appended. Records are written one at a time, so
  // the queue has room.
  void Send(Message message) override { loop_->Deliver(std::move(message)); }

  void Lead(Recovered recovered) {
    if (!recovered || recovered->view().job_name() == options_.job_name) {
      return events_.leads(std::move(recovered));
    }
    events_.failed(absl::InvalidArgumentError(absl::StrCat(
        "the scheduler log in etcd belongs to job '", recovered->view().job_name(), "', not '",
        options_.job_name, "': give each job an --etcd-prefix of its own")));
  }

  const Options options_;
  const Events events_;
  LoopbackHub hub_;
  const std::unique_ptr<Transport> nowhere_ = hub_.MakeTransport("");
  std::unique_ptr<EtcdLog> log_;
  std::unique_ptr<ReliablePort> scheduler_;
  std::unique_ptr<EventLoop> loop_;
};

}  // namespace

absl::Status LogBackend::Options::Validate() const {
  if (etcd.empty()) return absl::OkStatus();
  if (!file.empty()) {
    return absl::InvalidArgumentError(
        "log-file and etcd are both set: decisions are kept in one place; unset one");
  }
  for (const std::string& address : etcd) {
    if (!IsHostPort(address)) {
      return absl::InvalidArgumentError(
          absl::StrCat("etcd = '", address, "': HOST:PORT[,HOST:PORT] is wanted"));
    }
  }
  if (etcd_lease < absl::Seconds(1) || etcd_lease > absl::Minutes(10)) {
    return absl::InvalidArgumentError(
        absl::StrCat("etcd-lease = ", absl::FormatDuration(etcd_lease), ": 1s to 10m are allowed"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<LogBackend>> LogBackend::Open(const Options& options,
                                                             Events events) {
  COVEY_RETURN_IF_ERROR(options.Validate());
  if (!options.etcd.empty()) {
    return std::make_unique<EtcdBackend>(options, std::move(events));
  }
  if (options.file.empty()) {
    return std::make_unique<LocalBackend<NullLog>>(std::make_unique<NullLog>(), std::nullopt);
  }
  COVEY_ASSIGN_OR_RETURN(auto log, FileLog::Open(std::make_unique<OsLogFolder>(options.file)));
  Recovered recovered = log->recovered();
  if (recovered && recovered->view().job_name() != options.job_name) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the scheduler log ", options.file, " belongs to job '", recovered->view().job_name(),
        "', not '", options.job_name, "': name another file, or that job"));
  }
  return std::make_unique<LocalBackend<FileLog>>(std::move(log), std::move(recovered));
}

}  // namespace covey::scheduler
