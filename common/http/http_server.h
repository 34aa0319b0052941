// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/http/http_message.h"

namespace covey {

// Where a server listens. A plain value.
struct HttpAddress {
  std::string host;   // a name or a number, an IPv6 number without brackets
  uint32_t port = 0;  // 0 = any free port

  // "HOST:PORT", "[::1]:PORT". INVALID_ARGUMENT: it is something else.
  static absl::StatusOr<HttpAddress> Parse(absl::string_view text);
  std::string Show() const;
};

// The answer to one request, which may be given later and on another thread. Copies share it: the
// first Send counts. When the last copy goes without a Send, the answer is 503. Thread-safe. It may
// outlive the server; then Send has no effect.
class HttpReply {
 public:
  void Send(HttpResponse response) const;

 private:
  friend class HttpServer;
  struct State;
  explicit HttpReply(std::shared_ptr<State> state) : state_(std::move(state)) {}

  std::shared_ptr<State> state_;
};

// Answers GET and HEAD over plain HTTP/1.1: for probes, metrics and pages on this host. It knows
// neither TLS nor passwords.
//
// One thread serves all connections and waits for none of them: a client that is slow or silent
// delays no other. A connection brings one request. It is closed when it has been answered, or
// `deadline` after it was opened, 0.1 s late at most.
//
// Limits: a head of kHeadBytesMax, otherwise 400; no body, otherwise 413; kConnectionsMax. One more
// connection ends the oldest that has not sent its request yet; when all have, it is ended itself.
// Other methods get 501.
//
// Thread-safety: Start and the destructor on one thread. The handler runs on the server's thread
// and must not block: it answers at once, or hands its reply over to a thread that will.
class HttpServer {
 public:
  static constexpr size_t kHeadBytesMax = 8 << 10;
  static constexpr size_t kConnectionsMax = 64;

  using Handler = std::function<void(const HttpRequest& request, HttpReply reply)>;
  struct Options {
    HttpAddress address;
    std::string thread_name = "http";  // at most 15 characters
    absl::Duration deadline = absl::Seconds(2);
  };

  // Listens, and serves from here on. UNAVAILABLE: the name has no address, or the address cannot
  // be listened at; the message says why.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const Options& options, Handler handler);
  // Ends open connections without an answer, and joins. Afterwards the handler is not called.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Where it listens, with the port that was chosen.
  const HttpAddress& address() const { return address_; }

 private:
  class Engine;
  HttpServer(HttpAddress address, std::unique_ptr<Engine> engine);

  const HttpAddress address_;
  const std::unique_ptr<Engine> engine_;
};

}  // namespace covey
