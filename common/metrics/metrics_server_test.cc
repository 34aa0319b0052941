// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/metrics_server.h"

#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "common/base/set_once.h"
#include "common/http/testing/raw_http_client.h"
#include "common/net/loopback_transport.h"
#include "common/runtime/event_loop.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr absl::Duration kPatience = RawHttpClient::kPatience;

class IdleActor : public Actor {
 public:
  void Receive(absl::Time, const Message&, Outbox&) override {}
  void Wake(absl::Time, Outbox&) override {}
  absl::Time NextWake() const override { return absl::InfiniteFuture(); }
};

class MetricsServerTest : public testing::Test {
 protected:
  MetricsServerTest() {
    control_.Start();
    data_.Start();
    auto server = MetricsServer::Start(
        {.address = "127.0.0.1:0",
         .role = "server",
         .tls = "/no/such/folder",
         .fill = [](absl::Time, MetricPage& page) { page.Gauge("covey_depth", "Depth.", 3); },
         .conditions =
             [this](absl::Time) {
               return std::vector<ReadyCondition>{
                   {.name = "registered", .holds = true},
                   {.name = "lease", .holds = has_lease_, .why = "it \"expired\""}};
             },
         .stuck_after = absl::Milliseconds(1)},
        "control", PostTo(control_));
    EXPECT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  ~MetricsServerTest() override {
    control_.Stop();
    data_.Stop();
    server_.reset();
  }
  std::string Get(const std::string& path) {
    return RawHttpClient(server_->address().port).Ask("GET", path);
  }
  static EventLoop::Options Options(uint32_t number) {
    return {.job = 9, .self = {NodeId(5), number}, .incarnation = Incarnation(7)};
  }

  LoopbackHub hub_;
  IdleActor actor_;
  std::unique_ptr<Transport> control_transport_ = hub_.MakeTransport("");
  std::unique_ptr<Transport> data_transport_ = hub_.MakeTransport("");
  EventLoop control_{Options(0), actor_, *control_transport_};
  EventLoop data_{Options(1), actor_, *data_transport_};
  bool has_lease_ = true;  // before a request
  std::unique_ptr<MetricsServer> server_;
};

TEST_F(MetricsServerTest, ShowsMetricsOfProcessAndRole) {
  const std::string page = Get("/metrics");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(page, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(page, HasSubstr("covey_build_info{role=\"server\",version=\""));
  EXPECT_THAT(page, HasSubstr("\nprocess_resident_memory_bytes "));
  EXPECT_THAT(page, HasSubstr("\nprocess_start_time_seconds "));
  EXPECT_THAT(page, HasSubstr("\ncovey_certificate_expiry_timestamp_seconds 0\n"));
  EXPECT_THAT(page, HasSubstr("\ncovey_depth 3\n"));
}

TEST_F(MetricsServerTest, ReadyShowsEachCondition) {
  std::string answer = Get("/readyz");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(answer, EndsWith("{\"ready\":true,\"conditions\":[{\"name\":\"registered\","
                               "\"holds\":true},{\"name\":\"lease\",\"holds\":true}]}\n"));
  has_lease_ = false;
  answer = Get("/readyz");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("{\"ready\":false,"));
  EXPECT_THAT(answer, HasSubstr("{\"name\":\"lease\",\"holds\":false,"
                                "\"why\":\"it \\\"expired\\\"\"}"));
}

TEST_F(MetricsServerTest, NamesTheLoopThatIsStuck) {
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
  const SetOnce<std::monostate> stuck;
  const SetOnce<std::monostate> released;
  data_.Post([stuck, released](absl::Time, Outbox&) {
    stuck.Set(std::monostate());
    released.WaitFor(kPatience);
  });
  ASSERT_NE(stuck.WaitFor(kPatience), nullptr);
  server_->Watch("data-1", PostTo(data_), [] {});
  std::string answer;
  const absl::Time until = MonotonicNow() + kPatience;
  do {
    answer = Get("/healthz");
  } while (MonotonicNow() < until && answer.find("from the loop data-1\n") == std::string::npos);
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 200 ")) << "the other loop is alive";
  released.Set(std::monostate());
}

TEST_F(MetricsServerTest, OtherPathsAndAnEndingProcess) {
  EXPECT_THAT(Get("/"), StartsWith("HTTP/1.1 404 "));
  control_.Stop();
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 503 "));
}

TEST(MetricsServerAddressTest, IsCheckedAsOtherPorts) {
  EXPECT_TRUE(MetricsServer::Check("", false, false).ok());
  EXPECT_TRUE(MetricsServer::Check("localhost:0", false, false).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(MetricsServer::Check("9464", false, false)));
  EXPECT_TRUE(absl::IsFailedPrecondition(MetricsServer::Check("0.0.0.0:1", false, false)));
  EXPECT_TRUE(MetricsServer::Check("0.0.0.0:1", false, true).ok());
  EXPECT_TRUE(MetricsServer::Check("0.0.0.0:1", true, false).ok());
}

}  // namespace
}  // namespace covey
