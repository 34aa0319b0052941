// SPDX-License-Identifier: Apache-2.0
#include "client/cli/dashboard/dashboard_command.h"

#include <openssl/rand.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/dashboard/dashboard_memory.h"
#include "client/cli/dashboard/page_files.h"
#include "client/cli/dashboard/request_check.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "common/base/bounded_queue.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/descriptor.h"
#include "common/http/http_server.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kAskInterval = absl::Seconds(1);
constexpr int kLookForSignalMs = 200;
constexpr size_t kTokenBytes = 16;

struct Pending {
  HttpRequest request;
  HttpReply reply;
};

// From the HTTP server's thread to the loop of the command.
class Requests {
 public:
  Requests() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    COVEY_CHECK(descriptor_.open());
  }
  // A request that finds no room is answered by the server, with 503.
  void Add(const HttpRequest& request, HttpReply reply) {
    if (queue_.Push({.request = request, .reply = std::move(reply)})) {
      eventfd_write(descriptor_.number(), 1);
    }
  }
  std::vector<Pending> TakeAll() {
    eventfd_t count;
    eventfd_read(descriptor_.number(), &count);
    return queue_.TakeAll();
  }
  int descriptor() const { return descriptor_.number(); }

 private:
  const Descriptor descriptor_;
  BoundedQueue<Pending> queue_{HttpServer::kConnectionsMax};
};

std::string MakeToken() {
  std::string bytes(kTokenBytes, '\0');
  COVEY_CHECK(RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), kTokenBytes) == 1);
  return absl::BytesToHexString(bytes);
}

HttpResponse FileAt(const std::string& path) {
  if (path == "/") return {.content_type = "text/html; charset=utf-8", .body = kPageHtml};
  if (path == "/page.css") return {.content_type = "text/css; charset=utf-8", .body = kPageCss};
  if (path == "/page.js") {
    return {.content_type = "text/javascript; charset=utf-8", .body = kPageJs};
  }
  if (path == "/icon.svg" || path == "/favicon.ico") {
    return {.content_type = "image/svg+xml", .body = kPageIcon};
  }
  return {.status = 404, .body = "no such page; the dashboard is at /\n"};
}

HttpResponse AnswerTo(const HttpRequest& request, uint32_t port, const std::string& token,
                      const DashboardMemory& memory) {
  HttpResponse response;
  if (std::optional<HttpResponse> refusal = RefusalOf(request, port, token)) {
    response = std::move(*refusal);
  } else if (request.path == "/api/v1/state") {
    response = {.content_type = "application/json",
                .body = memory.JsonSince(MonotonicNow(), SinceOf(request))};
  } else {
    response = FileAt(request.path);
  }
  AddSafeHeaders(response);
  return response;
}

void Serve(StatusPoller& poller, Requests& requests, uint32_t port, const std::string& token) {
  DashboardMemory memory(MonotonicNow());
  absl::Time next = absl::InfinitePast();
  while (!WaitForTermination(absl::ZeroDuration()).has_value()) {
    const absl::Time now = MonotonicNow();
    if (now >= next && !poller.asking()) {
      next = now + kAskInterval;
      poller.Ask();
    }
    pollfd ready[] = {{.fd = poller.descriptor(), .events = POLLIN, .revents = 0},
                      {.fd = requests.descriptor(), .events = POLLIN, .revents = 0}};
    poll(ready, 2, kLookForSignalMs);
    if (const auto status = poller.Take()) memory.Take(MonotonicNow(), *status);
    for (const Pending& each : requests.TakeAll()) {
      each.reply.Send(AnswerTo(each.request, port, token, memory));
    }
  }
}

}  // namespace

int DashboardCommand(int count, const char* const* arguments) {
  SchedulerOptions asked;
  uint32_t port = 0;
  ConfigFile options("covey dashboard",
                     "Shows a running cluster in a browser on this machine, and changes nothing. "
                     "Prints the page's URL; ends with Ctrl-C. Whoever has the URL and an account "
                     "on this machine sees what covey status shows.");
  asked.AddTo(options);
  options.Add("port", &port, "port of 127.0.0.1 for the page; 0 = any free one");
  if (const auto code = asked.Load(options, count, arguments)) return *code;

  Requests requests;
  StatusPoller poller(asked.target());
  const auto server = HttpServer::Start({.address = {.host = "127.0.0.1", .port = port}},
                                        [&requests](const HttpRequest& request, HttpReply reply) {
                                          requests.Add(request, std::move(reply));
                                        });
  if (!server.ok()) {
    PrintFailure(arguments[0], server.status());
    return kExitFailed;
  }
  const std::string token = MakeToken();
  WriteAll(STDOUT_FILENO, absl::StrCat("http://", (*server)->address().Show(), "/#", token, "\n"));
  Serve(poller, requests, (*server)->address().port, token);
  return kExitOk;
}

}  // namespace covey::cli
