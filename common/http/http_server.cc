// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_server.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/descriptor.h"
#include "common/base/mutex.h"
#include "common/base/status_macros.h"

namespace covey {
namespace {

constexpr uint32_t kPortMax = 65535;
constexpr int kWaitingMax = 128;
// How late a connection may be ended.
constexpr absl::Duration kSweepEvery = absl::Milliseconds(100);

// A thing of libevent, with the function that releases it.
template <typename T, void (*kRelease)(T*)>
struct Release {
  void operator()(T* held) const { kRelease(held); }
};
template <typename T, void (*kRelease)(T*)>
using Held = std::unique_ptr<T, Release<T, kRelease>>;
using Base = Held<event_base, event_base_free>;
using Event = Held<event, event_free>;
using Http = Held<evhttp, evhttp_free>;
using Listener = Held<evconnlistener, evconnlistener_free>;

// Wakes the server's thread from another one. Outlives the server where a reply does.
class Mailbox {
 public:
  struct Answer {
    evhttp_request* request;
    HttpResponse response;
  };

  explicit Mailbox(Descriptor wake) : wake_(std::move(wake)) {}
  int descriptor() const { return wake_.number(); }

  void Put(Answer answer) {
    MutexLock lock(mutex_);
    if (closed_) return;
    answers_.push_back(std::move(answer));
    WakeUp();
  }
  void Close() {
    MutexLock lock(mutex_);
    closed_ = true;
    WakeUp();
  }
  bool is_closed() {
    MutexLock lock(mutex_);
    return closed_;
  }
  std::vector<Answer> TakeAll() {
    MutexLock lock(mutex_);
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t taken = read(wake_.number(), &count, sizeof(count));
    return std::exchange(answers_, {});
  }

 private:
  void WakeUp() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const uint64_t one = 1;
    COVEY_CHECK(write(wake_.number(), &one, sizeof(one)) == sizeof(one));
  }

  const Descriptor wake_;
  Mutex mutex_;
  std::vector<Answer> answers_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

void DropReference(bufferevent* socket) { bufferevent_decref(socket); }

// Whether evhttp has let go of a bufferevent: it is ours alone.
bool IsReleased(bufferevent* socket) {
  bufferevent_event_cb callback = nullptr;
  bufferevent_getcb(socket, nullptr, nullptr, &callback, nullptr);
  return callback == nullptr;
}

void Answer(evhttp_request* request, const HttpResponse& response) {
  evkeyvalq* headers = evhttp_request_get_output_headers(request);
  evhttp_add_header(headers, "Content-Type", response.content_type.c_str());
  evhttp_add_header(headers, "Content-Length", absl::StrCat(response.body.size()).c_str());
  evhttp_add_header(headers, "Connection", "close");
  for (const auto& [key, value] : response.headers) {
    evhttp_add_header(headers, key.c_str(), value.c_str());
  }
  evbuffer* body = evhttp_request_get_output_buffer(request);
  if (evhttp_request_get_command(request) != EVHTTP_REQ_HEAD) {
    evbuffer_add(body, response.body.data(), response.body.size());
  }
  evhttp_send_reply(request, response.status, nullptr, nullptr);
}

HttpRequest RequestOf(evhttp_request* request) {
  HttpRequest result;
  const evhttp_uri* uri = evhttp_request_get_evhttp_uri(request);
  if (const char* path = evhttp_uri_get_path(uri)) result.path = path;
  if (const char* query = evhttp_uri_get_query(uri)) result.query = query;
  for (evkeyval* header = evhttp_request_get_input_headers(request)->tqh_first; header != nullptr;
       header = header->next.tqe_next) {
    result.headers.emplace_back(header->key, header->value);
  }
  return result;
}

// A listening socket, and the port that it has.
struct Bound {
  Listener listener;
  uint32_t port = 0;
};

absl::StatusOr<Bound> Listen(event_base* base, const HttpAddress& address) {
  const addrinfo hints = {.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  const int code =
      getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &found);
  if (code != 0) {
    return absl::UnavailableError(absl::StrCat("cannot listen at ", address.Show(),
                                               ": the name has no address (", gai_strerror(code),
                                               "); give an address of this host"));
  }
  const Held<addrinfo, freeaddrinfo> places(found);
  int error = 0;
  for (const addrinfo* place = found; place != nullptr; place = place->ai_next) {
    Listener listener(evconnlistener_new_bind(
        base, nullptr, nullptr, LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE,
        kWaitingMax, place->ai_addr, static_cast<int>(place->ai_addrlen)));
    error = errno;
    if (listener == nullptr) continue;
    sockaddr_storage own = {};
    socklen_t size = sizeof(own);
    char port[8] = "";
    if (getsockname(evconnlistener_get_fd(listener.get()), reinterpret_cast<sockaddr*>(&own),
                    &size) != 0 ||
        getnameinfo(reinterpret_cast<sockaddr*>(&own), size, nullptr, 0, port, sizeof(port),
                    NI_NUMERICSERV) != 0) {
      error = errno;
      continue;
    }
    Bound bound{.listener = std::move(listener)};
    COVEY_CHECK(absl::SimpleAtoi(port, &bound.port));
    return bound;
  }
  return absl::UnavailableError(absl::StrCat("cannot listen at ", address.Show(), ": ",
                                             strerrordesc_np(error),
                                             "; choose another port, or 0 for any free one"));
}

}  // namespace

absl::StatusOr<HttpAddress> HttpAddress::Parse(absl::string_view text) {
  const size_t colon = text.rfind(':');
  HttpAddress address;
  if (colon != absl::string_view::npos && absl::SimpleAtoi(text.substr(colon + 1), &address.port) &&
      address.port <= kPortMax) {
    absl::string_view host = text.substr(0, colon);
    const bool has_brackets = absl::StartsWith(host, "[") && absl::EndsWith(host, "]");
    if (has_brackets) host = host.substr(1, host.size() - 2);
    if (!host.empty() && (has_brackets || !absl::StrContains(host, ':'))) {
      address.host = std::string(host);
      return address;
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is not HOST:PORT; write for example 127.0.0.1:9464"));
}

std::string HttpAddress::Show() const {
  const bool is_ipv6 = absl::StrContains(host, ':');
  return is_ipv6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

struct HttpReply::State {
  // By the last copy, so there is no other thread.
  ~State() {
    if (request != nullptr) {
      mailbox->Put({request, {.status = 503, .body = "nothing has answered this request\n"}});
    }
  }
  void Send(HttpResponse response) {
    evhttp_request* answered = nullptr;
    {
      MutexLock lock(mutex);
      answered = std::exchange(request, nullptr);
    }
    if (answered != nullptr) mailbox->Put({answered, std::move(response)});
  }

  std::shared_ptr<Mailbox> mailbox;
  Mutex mutex;
  evhttp_request* request = nullptr;  // null = answered
};

void HttpReply::Send(HttpResponse response) const { state_->Send(std::move(response)); }

// All that belongs to the server's thread. libevent's evhttp knows neither a limit of connections
// nor a deadline that a client cannot prolong by sending a byte. So this object keeps a reference
// to the bufferevent of each connection, and ends a connection by shutting its socket down, which
// evhttp notices.
class HttpServer::Engine {
 public:
  Engine(Options options, Handler handler, std::shared_ptr<Mailbox> mailbox, Base base)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        mailbox_(std::move(mailbox)),
        base_(std::move(base)) {}
  ~Engine() {
    mailbox_->Close();
    if (thread_.joinable()) thread_.join();
    http_.reset();
  }

  absl::StatusOr<uint32_t> Start() {
    http_.reset(evhttp_new(base_.get()));
    COVEY_CHECK(http_ != nullptr);
    evhttp_set_max_headers_size(http_.get(), kHeadBytesMax);
    evhttp_set_max_body_size(http_.get(), 0);
    evhttp_set_allowed_methods(http_.get(), EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
    evhttp_set_bevcb(http_.get(), &Engine::Accept, this);
    evhttp_set_gencb(http_.get(), &Engine::Handle, this);
    COVEY_ASSIGN_OR_RETURN(Bound bound, Listen(base_.get(), options_.address));
    // It belongs to the HTTP server from here on.
    COVEY_CHECK(evhttp_bind_listener(http_.get(), bound.listener.release()) != nullptr);
    answers_.reset(event_new(base_.get(), mailbox_->descriptor(), EV_READ | EV_PERSIST,
                             &Engine::SendAnswers, this));
    COVEY_CHECK(answers_ != nullptr && event_add(answers_.get(), nullptr) == 0);
    sweep_.reset(event_new(base_.get(), -1, 0, &Engine::SweepAgain, this));
    COVEY_CHECK(sweep_ != nullptr);
    thread_ = std::thread([this] { Run(); });
    return bound.port;
  }

 private:
  // evhttp and this object share the bufferevent.
  struct Connection {
    Held<bufferevent, DropReference> socket;
    absl::Time opened;
    bool is_silent = true;  // its request has not come yet
  };

  void Run() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    pthread_setname_np(pthread_self(), options_.thread_name.substr(0, 15).c_str());
    event_base_dispatch(base_.get());
  }

  // A connection has been accepted.
  static bufferevent* Accept(event_base* base, void* engine) {
    return static_cast<Engine*>(engine)->Open(base);
  }
  bufferevent* Open(event_base* base) {
    Sweep();
    bool is_refused = false;
    if (connections_.size() >= kConnectionsMax) {
      const auto silent = std::find_if(connections_.begin(), connections_.end(),
                                       [](const Connection& open) { return open.is_silent; });
      is_refused = silent == connections_.end();
      if (!is_refused) {
        End(*silent);
        connections_.erase(silent);
      }
    }
    bufferevent* socket = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    COVEY_CHECK(socket != nullptr);
    bufferevent_incref(socket);
    connections_.push_back({.socket = Held<bufferevent, DropReference>(socket),
                            .opened = is_refused ? absl::InfinitePast() : MonotonicNow()});
    const timeval soon = absl::ToTimeval(kSweepEvery);
    if (!event_pending(sweep_.get(), EV_TIMEOUT, nullptr)) event_add(sweep_.get(), &soon);
    return socket;
  }
  static void End(const Connection& connection) {
    shutdown(bufferevent_getfd(connection.socket.get()), SHUT_RDWR);
  }
  // Ends the connections that have lasted too long, and lets go of those that evhttp has closed.
  void Sweep() {
    const absl::Time now = MonotonicNow();
    for (auto open = connections_.begin(); open != connections_.end();) {
      if (now - open->opened >= options_.deadline) End(*open);
      open = IsReleased(open->socket.get()) ? connections_.erase(open) : std::next(open);
    }
  }
  static void SweepAgain(evutil_socket_t, short, void* engine) {
    auto& self = *static_cast<Engine*>(engine);
    self.Sweep();
    const timeval soon = absl::ToTimeval(kSweepEvery);
    if (!self.connections_.empty()) event_add(self.sweep_.get(), &soon);
  }

  static void Handle(evhttp_request* request, void* engine) {
    static_cast<Engine*>(engine)->HandleRequest(request);
  }
  void HandleRequest(evhttp_request* request) {
    const bufferevent* socket =
        evhttp_connection_get_bufferevent(evhttp_request_get_connection(request));
    for (Connection& connection : connections_) {
      if (connection.socket.get() == socket) connection.is_silent = false;
    }
    auto state = std::make_shared<HttpReply::State>();
    state->mailbox = mailbox_;
    state->request = request;
    handler_(RequestOf(request), HttpReply(std::move(state)));
  }

  static void SendAnswers(evutil_socket_t, short, void* engine) {
    auto& self = *static_cast<Engine*>(engine);
    for (const Mailbox::Answer& answer : self.mailbox_->TakeAll()) {
      Answer(answer.request, answer.response);
    }
    if (self.mailbox_->is_closed()) event_base_loopbreak(self.base_.get());
  }

  const Options options_;
  const Handler handler_;
  const std::shared_ptr<Mailbox> mailbox_;
  const Base base_;
  std::list<Connection> connections_;  // the oldest first
  Http http_;
  Event answers_;
  Event sweep_;
  std::thread thread_;
};

HttpServer::HttpServer(HttpAddress address, std::unique_ptr<Engine> engine)
    : address_(std::move(address)), engine_(std::move(engine)) {}

HttpServer::~HttpServer() = default;

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const Options& options,
                                                              Handler handler) {
  Base base(event_base_new());
  Descriptor wake(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (base == nullptr || !wake.open()) {
    return absl::UnavailableError("cannot serve HTTP: this process may open no more files");
  }
  auto engine = std::make_unique<Engine>(
      options, std::move(handler), std::make_shared<Mailbox>(std::move(wake)), std::move(base));
  COVEY_ASSIGN_OR_RETURN(const uint32_t port, engine->Start());
  HttpAddress address = options.address;
  address.port = port;
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(address), std::move(engine)));
}

}  // namespace covey
