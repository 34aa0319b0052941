// SPDX-License-Identifier: Apache-2.0
#include "common/http/http_server.h"

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/set_once.h"
#include "common/http/testing/raw_http_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr absl::Duration kPatience = RawHttpClient::kPatience;

std::unique_ptr<HttpServer> Serve(HttpServer::Handler handler,
                                  absl::Duration deadline = kPatience) {
  auto server = HttpServer::Start({.address = {.host = "localhost"}, .deadline = deadline},
                                  std::move(handler));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

void Echo(const HttpRequest& request, const HttpReply& reply) {
  reply.Send({.body = absl::StrCat("[", request.path, "|", request.query, "|",
                                   request.Header("hOST"), "]")});
}

TEST(HttpServerTest, ReadsAddresses) {
  EXPECT_EQ(HttpAddress::Parse("host-1:9464")->Show(), "host-1:9464");
  EXPECT_EQ(HttpAddress::Parse("[::1]:0")->host, "::1");
  EXPECT_EQ(HttpAddress::Parse("[::1]:0")->Show(), "[::1]:0");
  for (const char* text :
       {"", "9464", ":9464", "host:", "host:-1", "host:65536", "::1:80", "[]:1"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(HttpAddress::Parse(text).status())) << text;
  }
}

TEST(HttpServerTest, AnswersGetAndHead) {
  const auto server = Serve(Echo);
  EXPECT_NE(server->address().port, 0u);
  const std::string answer = RawHttpClient(server->address().port).Ask("GET", "/a%20b?c=d");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n[/a%20b|c=d|here]"));
  const std::string head = RawHttpClient(server->address().port).Ask("HEAD", "/a%20b?c=d");
  EXPECT_THAT(head, HasSubstr("Content-Length: 17\r\n"));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
}

TEST(HttpServerTest, SendsALongAnswerWhole) {
  const auto server = Serve([](const HttpRequest&, const HttpReply& reply) {
    reply.Send({.status = 503, .body = std::string(5'000'000, 'x')});
  });
  const std::string answer = RawHttpClient(server->address().port).Ask("GET", "/");
  EXPECT_THAT(answer.substr(0, 20), StartsWith("HTTP/1.1 503 "));
  EXPECT_GT(answer.size(), 5'000'000u);
}

TEST(HttpServerTest, RefusesOtherMethodsBodiesAndLongHeads) {
  const auto server = Serve([](const HttpRequest&, const HttpReply& reply) {
    ADD_FAILURE() << "the handler was called";
    reply.Send({});
  });
  EXPECT_THAT(RawHttpClient(server->address().port).Ask("DELETE", "/"),
              StartsWith("HTTP/1.1 501 "));
  RawHttpClient body(server->address().port);
  body.Send("GET / HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nab");
  EXPECT_THAT(body.Receive(), StartsWith("HTTP/1.1 413 "));
  RawHttpClient longer(server->address().port);
  longer.Send(absl::StrCat("GET / HTTP/1.1\r\nA: ", std::string(9'000, 'a'), "\r\n\r\n"));
  EXPECT_THAT(longer.Receive(), StartsWith("HTTP/1.1 400 "));
  RawHttpClient garbage(server->address().port);
  garbage.Send(std::string("\0\xff\r\n\r\n", 6));
  EXPECT_THAT(garbage.Receive(), Not(HasSubstr(" 200 ")));
}

TEST(HttpServerTest, ASilentClientDelaysNoOther) {
  const auto server = Serve(Echo);
  std::vector<std::unique_ptr<RawHttpClient>> silent;
  for (int number = 0; number < 40; ++number) {
    silent.push_back(std::make_unique<RawHttpClient>(server->address().port));
    silent.back()->Send("GET / HTTP/1.1\r\n");
  }
  EXPECT_THAT(RawHttpClient(server->address().port).Ask("GET", "/"), StartsWith("HTTP/1.1 200 "));
}

// A client that sends a byte now and then counts as silent, too.
TEST(HttpServerTest, EndsAConnectionAtItsDeadline) {
  const auto server = Serve(Echo, /*deadline=*/absl::Milliseconds(300));
  RawHttpClient silent(server->address().port);
  RawHttpClient slow(server->address().port);
  const absl::Time begin = MonotonicNow();
  std::thread trickle([&slow, begin] {
    slow.Send("GET / HTTP/1.1\r\nA: ");
    while (MonotonicNow() - begin < absl::Seconds(1)) {
      slow.Send("a");
      std::this_thread::yield();
    }
  });
  EXPECT_THAT(silent.Receive(), IsEmpty());
  trickle.join();
  EXPECT_THAT(slow.Receive(), Not(HasSubstr(" 200 ")));
  EXPECT_LT(MonotonicNow() - begin, kPatience);
}

TEST(HttpServerTest, TheOldestSilentConnectionMakesRoom) {
  const auto server = Serve(Echo);
  std::vector<std::unique_ptr<RawHttpClient>> silent;
  for (size_t number = 0; number < HttpServer::kConnectionsMax; ++number) {
    silent.push_back(std::make_unique<RawHttpClient>(server->address().port));
  }
  EXPECT_THAT(RawHttpClient(server->address().port).Ask("GET", "/"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(silent.front()->Receive(), IsEmpty());
  EXPECT_THAT(silent.back()->Ask("GET", "/"), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServerTest, AnAnswerMayComeLaterFromAnotherThread) {
  const SetOnce<HttpReply> asked;
  const auto server = Serve([asked](const HttpRequest& request, const HttpReply& reply) {
    if (request.path == "/later") return asked.Set(reply);
    reply.Send({.body = "now"});
  });
  RawHttpClient later(server->address().port);
  later.Send("GET /later HTTP/1.1\r\nHost: here\r\n\r\n");
  const HttpReply* reply = asked.WaitFor(kPatience);
  ASSERT_NE(reply, nullptr);
  EXPECT_THAT(RawHttpClient(server->address().port).Ask("GET", "/"), EndsWith("now"));
  reply->Send({.body = "later"});
  reply->Send({.body = "twice"});
  EXPECT_THAT(later.Receive(), EndsWith("\r\n\r\nlater"));
}

TEST(HttpServerTest, AForgottenRequestGets503) {
  const auto server = Serve([](const HttpRequest&, const HttpReply&) {});
  EXPECT_THAT(RawHttpClient(server->address().port).Ask("GET", "/"), StartsWith("HTTP/1.1 503 "));
}

TEST(HttpServerTest, AReplyMayOutliveItsClientAndTheServer) {
  const SetOnce<HttpReply> asked;
  auto server = Serve([asked](const HttpRequest&, const HttpReply& reply) { asked.Set(reply); });
  auto client = std::make_unique<RawHttpClient>(server->address().port);
  client->Send("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
  const HttpReply* reply = asked.WaitFor(kPatience);
  ASSERT_NE(reply, nullptr);
  client.reset();
  server.reset();
  reply->Send({.body = "too late"});
}

TEST(HttpServerTest, AnAnswerToAClientThatHasGoneIsDropped) {
  const SetOnce<HttpReply> asked;
  auto server = Serve([asked](const HttpRequest& request, const HttpReply& reply) {
    if (request.path == "/later") return asked.Set(reply);
    reply.Send({.body = "now"});
  });
  auto client = std::make_unique<RawHttpClient>(server->address().port);
  client->Send("GET /later HTTP/1.1\r\nHost: here\r\n\r\n");
  const HttpReply* reply = asked.WaitFor(kPatience);
  ASSERT_NE(reply, nullptr);
  client.reset();
  reply->Send({.body = std::string(1'000'000, 'x')});
  EXPECT_THAT(RawHttpClient(server->address().port).Ask("GET", "/"), EndsWith("now"));
}

TEST(HttpServerTest, SaysWhyItCannotListen) {
  const auto server = Serve(Echo);
  const auto second =
      HttpServer::Start({.address = {.host = "127.0.0.1", .port = server->address().port}}, Echo);
  EXPECT_TRUE(absl::IsUnavailable(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("127.0.0.1:"));
  const auto nameless = HttpServer::Start({.address = {.host = "no such name"}}, Echo);
  EXPECT_TRUE(absl::IsUnavailable(nameless.status()));
}

}  // namespace
}  // namespace covey
