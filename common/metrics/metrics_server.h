// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/http/http_server.h"
#include "common/metrics/loop_watch.h"
#include "common/metrics/metric_page.h"
#include "common/runtime/actor.h"

namespace covey {

class EventLoop;

// How a loop is given work: it runs later, on the loop's thread, between two calls of its actor.
// False: the loop is stopping, or too much waits there; the work never runs.
using PostToLoop = std::function<bool(std::function<void(absl::Time now, Outbox& outbox)> work)>;

// That of a loop that outlives the result.
PostToLoop PostTo(EventLoop& loop);

// One thing that must hold before a process is ready.
struct ReadyCondition {
  std::string name;  // "lease"
  bool holds = false;
  std::string why = {};  // if it does not hold
};

// Where a process tells what an operator's tools ask, over HTTP:
//
//   /metrics           Prometheus's text
//   /healthz, /livez   200 while every loop ticks, otherwise 503 with the names of the others
//   /readyz            200 when all conditions hold, otherwise 503; with the conditions as JSON
//
// Metrics of the role and conditions are read on the thread of one loop, that which controls the
// process; a loop that is stuck delays only their answers. Whoever reaches the address may read all
// of it, and change nothing.
//
// Thread-safety: as HttpServer; Watch may be called on any thread. The loops have stopped before
// this object ends, and outlive it.
class MetricsServer {
 public:
  struct Options {
    std::string address;  // HOST:PORT
    std::string role;     // "server"
    std::string tls;      // the folder of the process's certificate; empty = it has none
    // Adds the metrics of the role. On the control loop's thread.
    std::function<void(absl::Time now, MetricPage& page)> fill;
    // On the control loop's thread.
    std::function<std::vector<ReadyCondition>(absl::Time now)> conditions;
    // How long a loop may owe a tick.
    absl::Duration stuck_after = absl::Seconds(10);
  };

  // The setting for errors.
  static constexpr char kSetting[] = "--metrics";
  static constexpr char kHelp[] =
      "HOST:PORT at which /metrics (Prometheus), /healthz and /readyz answer over plain HTTP; port "
      "0 = any free port; empty = none. An address that other hosts reach needs --tls or "
      "--insecure, "
      "and lets everybody there read";
  // INVALID_ARGUMENT: the address is not HOST:PORT. FAILED_PRECONDITION: other hosts reach it, and
  // neither of the others is set. An empty address is right.
  static absl::Status Check(const std::string& address, bool is_secured, bool is_insecure);

  // Serves, and logs where. `control` is watched under this name.
  // UNAVAILABLE: as HttpServer::Start.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(Options options, std::string name,
                                                              PostToLoop control);

  // Watches another loop, which has started. Before each tick `read` is called on its thread.
  void Watch(std::string name, PostToLoop loop, std::function<void()> read);

  const HttpAddress& address() const { return http_->address(); }

 private:
  MetricsServer(Options options, PostToLoop control);

  void Handle(const HttpRequest& request, const HttpReply& reply);
  void AnswerLive(const HttpReply& reply) const;

  const Options options_;
  const PostToLoop control_;
  LoopWatch watch_;
  std::unique_ptr<HttpServer> http_;  // destroyed first: its thread uses the others
};

// {"ready":false,"conditions":[{"name":"lease","holds":false,"why":"…"}]} and a newline. Pure.
std::string ReadyJson(const std::vector<ReadyCondition>& conditions);

}  // namespace covey
