// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/metrics_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clock.h"
#include "common/base/json_escape.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/metrics/process_metrics.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/exposure.h"
#include "common/security/wall_clock.h"

namespace covey {
namespace {

constexpr char kNotFound[] = "there is /metrics, /healthz, /livez and /readyz\n";

bool AllHold(const std::vector<ReadyCondition>& conditions) {
  return std::all_of(conditions.begin(), conditions.end(),
                     [](const ReadyCondition& condition) { return condition.holds; });
}

}  // namespace

PostToLoop PostTo(EventLoop& loop) {
  return
      [&loop](std::function<void(absl::Time, Outbox&)> work) { return loop.Post(std::move(work)); };
}

std::string ReadyJson(const std::vector<ReadyCondition>& conditions) {
  const auto write = [](std::string* out, const ReadyCondition& condition) {
    absl::StrAppend(out, "{\"name\":\"", JsonEscape(condition.name),
                    "\",\"holds\":", condition.holds ? "true" : "false");
    if (!condition.holds) absl::StrAppend(out, ",\"why\":\"", JsonEscape(condition.why), "\"");
    absl::StrAppend(out, "}");
  };
  return absl::StrCat("{\"ready\":", AllHold(conditions) ? "true" : "false", ",\"conditions\":[",
                      absl::StrJoin(conditions, ",", write), "]}\n");
}

absl::Status MetricsServer::Check(const std::string& address, bool is_secured, bool is_insecure) {
  if (address.empty()) return absl::OkStatus();
  const absl::StatusOr<HttpAddress> parsed = HttpAddress::Parse(address);
  if (!parsed.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(kSetting, ": ", parsed.status().message()));
  }
  return CheckExposure({.setting = kSetting,
                        .host = parsed->host,
                        .is_secured = is_secured,
                        .is_insecure = is_insecure});
}

MetricsServer::MetricsServer(Options options, PostToLoop control)
    : options_(std::move(options)), control_(std::move(control)), watch_(options_.stuck_after) {}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(Options options,
                                                                    std::string name,
                                                                    PostToLoop control) {
  COVEY_ASSIGN_OR_RETURN(const HttpAddress address, HttpAddress::Parse(options.address));
  auto server =
      std::unique_ptr<MetricsServer>(new MetricsServer(std::move(options), std::move(control)));
  server->Watch(std::move(name), server->control_, [] {});
  COVEY_ASSIGN_OR_RETURN(
      server->http_,
      HttpServer::Start({.address = address, .thread_name = "metrics"},
                        [self = server.get()](const HttpRequest& request, const HttpReply& reply) {
                          self->Handle(request, reply);
                        }));
  LogInfo("serves_metrics", {{"address", server->address().Show()}});
  if (!IsLoopback(address.host)) {
    LogWarning("metrics_exposed",
               {{"address", server->address().Show()},
                {"text", "everybody who reaches this address may read the metrics"}});
  }
  return server;
}

void MetricsServer::Watch(std::string name, PostToLoop loop, std::function<void()> read) {
  watch_.Add(std::move(name),
             [loop = std::move(loop), read = std::move(read)](std::function<void()> tick) {
               return loop([read, tick = std::move(tick)](absl::Time, Outbox&) {
                 read();
                 tick();
               });
             });
}

// A reply that the loop does not take becomes 503, as HttpReply says.
void MetricsServer::Handle(const HttpRequest& request, const HttpReply& reply) {
  watch_.Ask(MonotonicNow());
  if (request.path == "/metrics") {
    // These metrics are read from files, so that the control loop does not wait for the disk.
    MetricPage page;
    AddProcessMetrics(options_.role, page);
    if (!options_.tls.empty()) AddCertificateMetrics(options_.tls, WallClockNow(), page);
    control_([this, reply, page = std::move(page)](absl::Time now, Outbox&) mutable {
      options_.fill(now, page);
      reply.Send({.content_type = MetricPage::kContentType, .body = page.Text()});
    });
  } else if (request.path == "/healthz" || request.path == "/livez") {
    AnswerLive(reply);
  } else if (request.path == "/readyz") {
    control_([this, reply](absl::Time now, Outbox&) {
      const std::vector<ReadyCondition> conditions = options_.conditions(now);
      reply.Send({.status = AllHold(conditions) ? 200 : 503,
                  .content_type = "application/json",
                  .body = ReadyJson(conditions)});
    });
  } else {
    reply.Send({.status = 404, .body = kNotFound});
  }
}

void MetricsServer::AnswerLive(const HttpReply& reply) const {
  const std::vector<std::string> stuck = watch_.Stuck(MonotonicNow());
  if (stuck.empty()) return reply.Send({.body = "ok\n"});
  reply.Send({.status = 503,
              .body = absl::StrCat("no tick for ", absl::FormatDuration(options_.stuck_after),
                                   " from the loop ", absl::StrJoin(stuck, ", "), "\n")});
}

}  // namespace covey
