// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/transport.h"
#include "common/runtime/event_loop.h"
#include "proto/log.pb.h"
#include "scheduler/log/standby.h"

namespace covey::scheduler {

// Where decisions are made durable: nowhere, in a file of this machine, or in etcd. The backend
// also says which scheduler may decide: with etcd, one of several schedulers of a job leads and the
// others stand by. The process has one backend; the scheduler's actor knows it by DiskAppend and
// DiskDurable only.
class LogBackend {
 public:
  // The newest record; nothing = a new job.
  using Recovered = std::optional<proto::LogRecord>;

  struct Options {
    std::string job_name;
    // Empty = no file.
    std::string file;
    // "host:port" of each etcd member; with these there is no file.
    std::vector<std::string> etcd;
    std::string etcd_prefix;  // empty = "covey/" and the job's name
    absl::Duration etcd_lease = absl::Seconds(2);
  };
  // Called on a thread of the backend, `failed` on the loop's too.
  struct Events {
    std::function<void(Recovered)> leads;
    // Why this scheduler does not lead yet, for people.
    std::function<void(std::string)> stands_by;
    // Nothing is made durable any more, or another scheduler leads: the process is to end.
    std::function<void(absl::Status)> failed;
  };

  // INVALID_ARGUMENT: the options contradict each other, or the file belongs to another job. For
  // the rest see FileLog::Open.
  static absl::StatusOr<std::unique_ptr<LogBackend>> Open(const Options& options, Events events);
  virtual ~LogBackend() = default;

  // Takes the loop's DiskAppend messages.
  virtual MessagePort& port() = 0;
  // Begins. Answers go to `loop`, whose actor is `front`, and none is lost however full the queue
  // of the loop is. Other schedulers learn that this one is at `address`. Returns the state to lead
  // with where that is known at once, as with a file; otherwise Events tell.
  virtual std::optional<Recovered> Start(const std::string& address, EventLoop& loop,
                                         Standby& front) = 0;
  // After the loop has stopped. Lets others lead at once.
  virtual void Stop() = 0;
};

}  // namespace covey::scheduler
