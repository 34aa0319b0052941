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

// Makes decisions durable in a file of this machine or in etcd, or not at all. The backend also
// determines which scheduler may decide: with etcd, one of several schedulers of a job leads and
// the others stand by. The process has one backend; the scheduler's actor sees only its DiskAppend
// and DiskDurable messages.
class LogBackend {
 public:
  // The newest record; nothing = a new job.
  using Recovered = std::optional<proto::LogRecord>;

  struct Options {
    std::string job_name;
    // Empty = no file.
    std::string file;
    // "host:port" of each etcd member. With these no file is used.
    std::vector<std::string> etcd;
    std::string etcd_prefix;  // empty = "covey/" and the job's name
    absl::Duration etcd_lease = absl::Seconds(2);

    // INVALID_ARGUMENT: they contradict each other, or an address is none. Pure.
    absl::Status Validate() const;
  };
  // Called on a thread of the backend, and not at all where it has none: with a file.
  struct Events {
    std::function<void(Recovered)> leads;
    // Until when this scheduler leads, unless this is called again; the first time before `leads`.
    // Not called where it leads for good.
    std::function<void(absl::Time)> leads_until;
    // Why this scheduler does not lead yet, for users.
    std::function<void(std::string)> stands_by;
    // Nothing is made durable any more, or another scheduler leads: the process must exit. A disk
    // that fails is no such case: it is tried again.
    std::function<void(absl::Status)> failed;
  };

  // INVALID_ARGUMENT: as Options::Validate, or the file belongs to another job. Other errors as
  // FileLog::Open.
  static absl::StatusOr<std::unique_ptr<LogBackend>> Open(const Options& options, Events events);
  virtual ~LogBackend() = default;

  // The port for the loop's DiskAppend messages. After a reply with an error the next record is
  // tried as if nothing had happened.
  virtual MessagePort& port() = 0;
  // Starts. Replies go to `loop`, whose actor is `front`; none is lost, even if the queue of the
  // loop is full. Other schedulers learn that this one is at `address`. Returns the recovered state
  // when this scheduler leads at once, as with a file; otherwise Events report it later.
  virtual std::optional<Recovered> Start(const std::string& address, EventLoop& loop,
                                         Standby& front) = 0;
  // After the loop has stopped. Lets others lead at once.
  virtual void Stop() = 0;
};

}  // namespace covey::scheduler
