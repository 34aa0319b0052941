// SPDX-License-Identifier: Apache-2.0

// Over real connections on loopback: who gets through a handshake, and who does not.
#include "common/security/tls_credentials.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/security/certificate_authority.h"
#include "common/security/certificate_content.h"
#include "common/security/credential_folder.h"
#include "common/security/node_credentials.h"
#include "proto/scheduler_service.grpc.pb.h"

namespace covey {
namespace {

using testing::HasSubstr;

constexpr absl::Duration kDay = absl::Hours(24);
constexpr absl::Duration kYear = absl::Hours(365 * 24);
constexpr char kWorkerUri[] = "URI:spiffe://covey/job/mnist/role/worker";
constexpr absl::Duration kPatience = absl::Seconds(60);

// Of the certificate that the peer has shown.
std::string SerialIn(const grpc::AuthContext& context) {
  const auto texts = context.FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
  if (texts.size() != 1) return "";
  return Certificate::ParseAll({texts[0].data(), texts[0].size()})->front().Serial();
}

// Says who called.
class Service : public proto::Scheduler::Service {
 public:
  grpc::Status GetStatus(grpc::ServerContext* context, const proto::StatusRequest*,
                         proto::StatusReply*) override {
    const auto caller = CallerOf(*context->auth_context());
    MutexLock lock(mutex_);
    caller_serial_ = SerialIn(*context->auth_context());
    caller_ = caller.ok() ? Describe(*caller) : std::string(caller.status().message());
    return grpc::Status::OK;
  }
  std::string caller() {
    MutexLock lock(mutex_);
    return caller_;
  }
  std::string caller_serial() {
    MutexLock lock(mutex_);
    return caller_serial_;
  }

 private:
  Mutex mutex_;
  std::string caller_ ABSL_GUARDED_BY(mutex_);
  std::string caller_serial_ ABSL_GUARDED_BY(mutex_);
};

// A scheduler's port on loopback.
class Server {
 public:
  explicit Server(const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", credentials, &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~Server() { server_->Shutdown(); }

  std::shared_ptr<grpc::Channel> Connect(
      const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
    grpc::ChannelArguments arguments;
    // Not the connection of another channel.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port_), credentials, arguments);
  }
  // `serial`, unless null: of the certificate that the server has shown.
  static grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                           std::string* serial = nullptr) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + kPatience));
    proto::StatusReply reply;
    const grpc::Status status = proto::Scheduler::NewStub(channel)->GetStatus(&context, {}, &reply);
    if (status.ok() && serial != nullptr) *serial = SerialIn(*context.auth_context());
    return status;
  }
  // Over a new connection.
  grpc::Status Call(const std::shared_ptr<grpc::ChannelCredentials>& credentials) const {
    return Call(Connect(credentials));
  }
  std::string caller() { return service_.caller(); }
  std::string caller_serial() { return service_.caller_serial(); }

 private:
  Service service_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

class TlsCredentialsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "/tls-XXXXXX";
    root_ = mkdtemp(path.data());
    MakeAuthority("ca");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::string Path(const std::string& name) { return root_ + "/" + name; }
  void MakeAuthority(const std::string& name, const std::string& trust_domain = "covey") {
    ASSERT_TRUE(
        CertificateAuthority::Create(Path(name), trust_domain, now_ - kYear, 2 * kYear).ok());
  }
  std::unique_ptr<CertificateAuthority> Authority(const std::string& name = "ca") {
    return *CertificateAuthority::Open(Path(name));
  }
  struct Node {
    IdentityRole role = IdentityRole::kWorker;
    std::string job = "mnist";
    std::string authority = "ca";
    std::optional<uint32_t> rank;
  };
  TlsCredentials Make(const std::string& name, const Node& node) {
    const auto authority = Authority(node.authority);
    EXPECT_TRUE(authority
                    ->Issue({.trust_domain = authority->trust_domain(),
                             .job = node.job,
                             .role = node.role,
                             .rank = node.rank},
                            now_, 7 * kDay, Path(name))
                    .ok());
    return *TlsCredentials::Load(Path(name), now_);
  }
  using Provider = std::shared_ptr<grpc::experimental::CertificateProviderInterface>;
  struct Odd {
    std::string names;
    std::string usage;
    absl::Duration validity;
  };
  // Signed by the root of "ca".
  Provider MakeOdd(const Odd& odd) {
    const SigningRoot root = *SigningRoot::Load(
        *PrivateKey::Parse(ReadCredential(Path("ca") + "/ca.key", Readers::kOwner)->view()),
        Authority()->roots()[0]);
    const PrivateKey key = *PrivateKey::Make();
    const Certificate certificate =
        *Sign({.name = "odd",
               .not_before = now_ - 10 * kDay,
               .not_after = now_ + odd.validity,
               .extensions = {{NID_key_usage, "digitalSignature"},
                              {NID_ext_key_usage, odd.usage},
                              {NID_subject_alt_name, odd.names}}},
              key, {.key = root.key(), .certificate = &root.certificate()});
    return std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
        root.certificate().Text(), std::vector<grpc::experimental::IdentityKeyCertPair>{
                                       {std::string(key.Text()->view()), certificate.Text()}});
  }
  static void Use(const Provider& provider, grpc::experimental::TlsCredentialsOptions& options) {
    options.set_certificate_provider(provider);
    options.watch_root_certs();
    options.watch_identity_key_cert_pairs();
  }
  TlsCredentials Scheduler() { return Make("scheduler", {.role = IdentityRole::kScheduler}); }

  const absl::Time now_ = absl::Now();
  std::string root_;
};

TEST_F(TlsCredentialsTest, TellBothEndsWhoTheOtherIs) {
  Server server(Scheduler().ForServer());
  const TlsCredentials worker = Make("worker", {});
  const grpc::Status status = server.Call(worker.ForSchedulersOf("mnist"));
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(server.caller(), "worker of job mnist");
  EXPECT_TRUE(server.Call(worker.ForSchedulersOf(std::nullopt)).ok());
  EXPECT_EQ(worker.identity().role, IdentityRole::kWorker);
  // Another job gets through the handshake; the table of rights says no, and why.
  EXPECT_TRUE(server.Call(Make("other", {.job = "other"}).ForSchedulersOf("mnist")).ok());
  EXPECT_EQ(server.caller(), "worker of job other");
}

TEST_F(TlsCredentialsTest, ConnectOnlyToSchedulersOfTheJob) {
  const TlsCredentials worker = Make("worker", {});
  Server other(Make("other", {.role = IdentityRole::kScheduler, .job = "other"}).ForServer());
  const grpc::Status refused = other.Call(worker.ForSchedulersOf("mnist"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("not of job mnist"));
  EXPECT_TRUE(other.Call(worker.ForSchedulersOf(std::nullopt)).ok());
  Server poser(Make("poser", {}).ForServer());
  EXPECT_EQ(poser.Call(worker.ForSchedulersOf(std::nullopt)).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(poser.caller(), "");
}

TEST_F(TlsCredentialsTest, RefuseStrangers) {
  Server server(Scheduler().ForServer());
  MakeAuthority("elsewhere");
  EXPECT_EQ(server.Call(Make("stranger", {.authority = "elsewhere"}).ForSchedulersOf("mnist"))
                .error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server.Call(grpc::InsecureChannelCredentials()).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(server.caller(), "");
}

TEST_F(TlsCredentialsTest, AreNeverGivenUpForPlainConnections) {
  Server plain(grpc::InsecureServerCredentials());
  EXPECT_EQ(plain.Call(Make("worker", {}).ForSchedulersOf("mnist")).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(plain.Call(grpc::InsecureChannelCredentials()).ok());
  EXPECT_EQ(plain.caller(), "the peer has shown no certificate");
}

TEST_F(TlsCredentialsTest, RefuseThoseThatAreNotLoaded) {
  Make("worker", {});
  EXPECT_THAT(TlsCredentials::Load(Path("worker"), now_ + 8 * kDay).status().message(),
              HasSubstr("it expired at"));
  EXPECT_FALSE(TlsCredentials::Load(Path("none"), now_).ok());
}

TEST_F(TlsCredentialsTest, NameTheRankOfTheirRoleOnly) {
  const TlsCredentials third = Make("third", {.rank = 3});
  EXPECT_EQ(third.RankOr(IdentityRole::kWorker, -1), 3);
  EXPECT_EQ(third.RankOr(IdentityRole::kClient, -1), -1);
  EXPECT_EQ(third.RankOr(IdentityRole::kClient, 5), 5);
  EXPECT_EQ(Make("any", {}).RankOr(IdentityRole::kWorker, 5), 5);
}

// Certificates that the root has signed, and that our authority would not make.
TEST_F(TlsCredentialsTest, RefuseOddCertificatesOfTheRoot) {
  const Server server(Scheduler().ForServer());
  const auto call_with = [&](const std::string& names, absl::Duration validity) {
    grpc::experimental::TlsChannelCredentialsOptions options;
    Use(MakeOdd({.names = names, .usage = "clientAuth", .validity = validity}), options);
    options.set_check_call_host(false);
    options.set_certificate_verifier(
        std::make_shared<grpc::experimental::NoOpCertificateVerifier>());
    return server.Call(grpc::experimental::TlsCredentials(options)).error_code();
  };
  EXPECT_EQ(call_with(kWorkerUri, kDay), grpc::StatusCode::OK);
  for (const std::string& names :
       {absl::StrCat(kWorkerUri, ",", kWorkerUri), std::string("DNS:localhost"),
        std::string("URI:spiffe://covey/x"),
        std::string("URI:spiffe://elsewhere/job/mnist/role/worker")}) {
    EXPECT_EQ(call_with(names, kDay), grpc::StatusCode::UNAVAILABLE) << names;
  }
  EXPECT_EQ(call_with(kWorkerUri, -kDay), grpc::StatusCode::UNAVAILABLE) << "expired";
}

TEST_F(TlsCredentialsTest, RefuseAWorkerThatMayAcceptConnections) {
  const Provider provider =
      MakeOdd({.names = kWorkerUri, .usage = "serverAuth,clientAuth", .validity = kDay});
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  Use(provider, options);
  Server poser(grpc::experimental::TlsServerCredentials(options));
  const grpc::Status refused = poser.Call(Make("worker", {}).ForSchedulersOf("mnist"));
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("and no scheduler"));
  EXPECT_EQ(poser.caller(), "");
}

// All through the replacement of a root, with both folders renewed under an open connection.
// Between two steps both ends get to know their new files, as the steps demand.
TEST_F(TlsCredentialsTest, AreReloadedWithoutARestart) {
  Server server(Scheduler().ForServer());
  const auto credentials = Make("worker", {}).ForSchedulersOf("mnist");
  const auto open = server.Connect(credentials);
  ASSERT_TRUE(Server::Call(open).ok());
  const auto renew_and_await = [&] {
    std::vector<std::string> renewed;
    for (const char* name : {"scheduler", "worker"}) {
      renewed.push_back(Authority()->Renew(Path(name), now_)->Serial());
    }
    const absl::Time deadline = MonotonicNow() + kPatience;
    std::vector<std::string> shown;
    while (shown != renewed) {
      ASSERT_LT(MonotonicNow(), deadline);
      shown = {""};
      const grpc::Status status = Server::Call(server.Connect(credentials), &shown[0]);
      ASSERT_TRUE(status.ok()) << status.error_message();
      shown.push_back(server.caller_serial());
    }
    EXPECT_TRUE(Server::Call(open).ok());
  };
  ASSERT_TRUE(Authority()->AddRoot(now_, kYear).ok());
  renew_and_await();
  const auto left_behind = Make("left_behind", {}).ForSchedulersOf("mnist");
  ASSERT_TRUE(Authority()->UseRoot(now_).ok());
  renew_and_await();
  EXPECT_TRUE(server.Call(left_behind).ok()) << "its root is still trusted";
  ASSERT_TRUE(Authority()->RemoveRoot(now_, CertificateAuthority::InUse::kIsIgnored).ok());
  renew_and_await();
  EXPECT_EQ(server.Call(left_behind).error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace covey
