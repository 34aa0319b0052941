// SPDX-License-Identifier: Apache-2.0

// A secured scheduler over loopback sockets: every identity makes every call.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/cluster/view.h"
#include "common/net/control_methods.h"
#include "common/net/loopback_transport.h"
#include "common/security/certificate_authority.h"
#include "common/security/rights.h"
#include "common/security/tls_credentials.h"
#include "common/security/wall_clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/scheduler_service.grpc.pb.h"
#include "scheduler/log/file_log.h"
#include "scheduler/rpc/grpc_service.h"
#include "scheduler/scheduler_actor.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

constexpr char kJob[] = "job";
constexpr absl::Duration kDay = absl::Hours(24);
constexpr absl::Duration kPatience = absl::Seconds(20);

Identity Of(IdentityRole role, std::optional<uint32_t> rank = std::nullopt) {
  return {.trust_domain = "covey", .job = kJob, .role = role, .rank = rank};
}

proto::Role RoleOf(IdentityRole role) {
  return role == IdentityRole::kServer   ? proto::SERVER
         : role == IdentityRole::kWorker ? proto::WORKER
                                         : proto::CLIENT;
}

bool IsProcess(IdentityRole role) {
  return role == IdentityRole::kServer || role == IdentityRole::kWorker ||
         role == IdentityRole::kClient;
}

// Makes certificates; one folder for each identity.
class Folders {
 public:
  Folders() {
    std::string path = testing::TempDir() + "/secured-XXXXXX";
    root_ = mkdtemp(path.data());
    EXPECT_TRUE(CertificateAuthority::Create(root_ + "/ca", "covey", now_ - kDay, 9 * kDay).ok());
  }
  ~Folders() { std::filesystem::remove_all(root_); }

  std::shared_ptr<const TlsCredentials> Make(const Identity& identity,
                                             absl::Duration lifetime = kDay) {
    const std::string folder = absl::StrCat(root_, "/", ++made_);
    EXPECT_TRUE(
        (*CertificateAuthority::Open(root_ + "/ca"))->Issue(identity, now_, lifetime, folder).ok());
    return std::make_shared<const TlsCredentials>(*TlsCredentials::Load(folder, now_));
  }

  // Tells the scheduler of this folder.
  void Revoke(const Identity& identity, const std::string& scheduler) {
    const auto authority = *CertificateAuthority::Open(root_ + "/ca");
    EXPECT_EQ(authority->Revoke(UriOf(identity), now_)->size(), 1);
    EXPECT_TRUE(authority->Renew(scheduler, now_).ok());
  }

 private:
  const absl::Time now_ = WallClockNow();
  std::string root_;
  int made_ = 0;
};

class SecuredServiceTest : public ::testing::Test {
 protected:
  SecuredServiceTest() {
    log_.SetReceiver([this](Message message) { loop_.Deliver(std::move(message)); });
    loop_.AddPort({kSchedulerNode, kDiskLoop}, log_);
    auto service = GrpcService::Start({.host = "127.0.0.1", .tls = tls_, .has_reflection = true},
                                      actor_, loop_);
    EXPECT_TRUE(service.ok()) << service.status();
    service_ = *std::move(service);
    loop_.SetDefaultPort(*service_);
    loop_.Start();
    service_->SetServing();
  }
  ~SecuredServiceTest() override {
    service_->Shutdown();
    loop_.Stop();
  }

  std::shared_ptr<grpc::Channel> Connect(const TlsCredentials& tls) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", service_->port()),
                                     tls.ForSchedulersOf(kJob), arguments);
  }
  // The connection of an identity, which is made once.
  std::shared_ptr<grpc::Channel> ChannelOf(IdentityRole role) {
    auto& channel = channels_[role];
    if (channel == nullptr) channel = Connect(*folders_.Make(Of(role)));
    return channel;
  }
  std::unique_ptr<grpc::ClientContext> Context() const {
    auto context = std::make_unique<grpc::ClientContext>();
    context->set_deadline(absl::ToChronoTime(WallClockNow() + kPatience));
    return context;
  }

  proto::RegisterRequest Registration(proto::Role role, int rank = -1) {
    proto::RegisterRequest request;
    request.mutable_header()->set_incarnation(++incarnation_);
    request.set_job_name(kJob);
    request.set_role(role);
    request.set_rank(rank);
    request.add_endpoints("");
    request.add_endpoints("tcp://127.0.0.1:1");
    request.set_data_key(std::string(32, 'k'));
    return request;
  }
  struct Node {
    proto::Header header;
    std::string name;
  };
  // Registers a node of its role.
  Node Register(IdentityRole role) {
    const proto::RegisterRequest request = Registration(RoleOf(role));
    proto::RegisterReply reply;
    const grpc::Status status =
        proto::Scheduler::NewStub(ChannelOf(role))->Register(Context().get(), request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    Node node{.header = request.header(), .name = ""};
    node.header.set_node(reply.node());
    for (const proto::Node& each : reply.view().nodes()) {
      if (each.id() == reply.node()) node.name = each.name();
    }
    return node;
  }

  // Calls a method with these bytes. A stream is read once.
  grpc::Status Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                    const std::string& bytes) {
    grpc::GenericStub generic(channel);
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> done;
    const auto context = Context();
    generic.UnaryCall(context.get(), method, {}, &request, &reply,
                      [&](grpc::Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }
  grpc::Status Watch(const std::shared_ptr<grpc::Channel>& channel, const proto::Header& header) {
    proto::WatchViewRequest request;
    *request.mutable_header() = header;
    const auto context = Context();
    const auto stream = proto::Scheduler::NewStub(channel)->WatchView(context.get(), request);
    proto::WatchViewReply reply;
    if (stream->Read(&reply)) return grpc::Status::OK;
    return stream->Finish();
  }

  Folders folders_;
  const std::shared_ptr<const TlsCredentials> tls_ = folders_.Make(Of(IdentityRole::kScheduler));
  Config config_{.job_name = kJob,
                 .servers = 1,
                 .groups = 0,
                 .workers_per_group = 1,
                 .elastic = true,
                 .identity = Of(IdentityRole::kScheduler)};
  SchedulerActor actor_{config_, std::nullopt};
  LoopbackHub hub_;
  std::unique_ptr<Transport> transport_ = hub_.MakeTransport("");
  EventLoop loop_{{.job = JobFingerprint(kJob),
                   .self = {kSchedulerNode, 0},
                   .incarnation = Incarnation(1),
                   .thread_name = "scheduler"},
                  actor_,
                  *transport_};
  NullLog log_;
  std::unique_ptr<GrpcService> service_;
  std::map<IdentityRole, std::shared_ptr<grpc::Channel>> channels_;
  uint64_t incarnation_ = 0;
};

bool IsRefused(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::PERMISSION_DENIED ||
         status.error_code() == grpc::StatusCode::UNAUTHENTICATED ||
         status.error_code() == grpc::StatusCode::CANCELLED;
}

// Whether only a node that has registered may call it.
bool IsForNodes(absl::string_view rpc) {
  for (const ControlMethod& method : kControlMethods) {
    if (method.rpc == rpc) return method.access == ControlAccess::kNodes;
  }
  return false;
}

TEST_F(SecuredServiceTest, EveryIdentityMayDoWhatTheTableSaysAndNothingElse) {
  int pairs = 0;
  for (const MethodRights& rights : AllRights()) {
    if (rights.method == "ServerReflectionInfo" ||
        (rights.service != proto::Scheduler::service_full_name() && rights.method == "Watch")) {
      continue;  // streams in both directions, or without an end: below
    }
    for (const IdentityRole role : kIdentityRoles) {
      for (const bool is_own : {true, false}) {
        if (is_own && !IsProcess(role)) continue;
        // The call speaks for one of its own nodes, or for another's.
        const Node other =
            Register(role == IdentityRole::kServer ? IdentityRole::kWorker : IdentityRole::kServer);
        const Node node = is_own ? Register(role) : other;
        const bool is_ours = rights.service == proto::Scheduler::service_full_name();
        // People have no node. Where a call needs one, they say that they are another's.
        const bool speaks = IsProcess(role) || (is_ours && IsForNodes(rights.method));
        const proto::Header header = speaks ? node.header : proto::Header();
        std::string bytes;
        if (rights.method == "Register") {
          bytes = Registration(is_own ? RoleOf(role) : proto::SERVER).SerializeAsString();
          if (!is_own && role == IdentityRole::kServer) {
            bytes = Registration(proto::WORKER).SerializeAsString();
          }
        } else if (rights.method == "Drain") {
          proto::DrainRequest drain;
          *drain.mutable_header() = header;
          drain.set_node(node.name);
          bytes = drain.SerializeAsString();
        } else if (rights.method == "Quarantine") {
          // No node releases itself, although it is its own.
          proto::QuarantineRequest release;
          *release.mutable_header() = header;
          release.set_producer(node.name);
          release.set_release(true);
          bytes = release.SerializeAsString();
        } else if (is_ours) {
          // The header has the same number in every request.
          proto::HeartbeatRequest request;
          *request.mutable_header() = header;
          bytes = request.SerializeAsString();
        }
        const grpc::Status status =
            rights.method == "WatchView"
                ? Watch(ChannelOf(role), header)
                : Call(ChannelOf(role), absl::StrCat("/", rights.service, "/", rights.method),
                       bytes);
        const Right right = rights.Of(role);
        const bool may = (right == Right::kYes && (is_own || !is_ours || !speaks)) ||
                         (right == Right::kOwn && is_own);
        EXPECT_EQ(!IsRefused(status), may)
            << NameOf(role) << " calls " << rights.method << (is_own ? " for itself" : "") << ": "
            << status.error_code() << " " << status.error_message();
        ++pairs;
      }
    }
  }
  EXPECT_GE(pairs, 150);
}

TEST_F(SecuredServiceTest, ShowsItsDefinitionToAdminsOnly) {
  const std::string method =
      absl::StrCat("/", "grpc.reflection.v1alpha.ServerReflection", "/", "ServerReflectionInfo");
  // A request without a question, to which the service replies.
  EXPECT_TRUE(Call(ChannelOf(IdentityRole::kAdmin), method, "").ok());
  EXPECT_EQ(Call(ChannelOf(IdentityRole::kWorker), method, "").error_code(),
            grpc::StatusCode::CANCELLED);
}

TEST_F(SecuredServiceTest, AProcessIsWhatItsCertificateSays) {
  const auto stub =
      proto::Scheduler::NewStub(Connect(*folders_.Make(Of(IdentityRole::kWorker, 3))));
  const auto outcome = [&](const proto::RegisterRequest& request) {
    proto::RegisterReply reply;
    return stub->Register(Context().get(), request, &reply);
  };
  for (const auto& wrong : {Registration(proto::WORKER, 2), Registration(proto::WORKER),
                            Registration(proto::SERVER, 3)}) {
    const grpc::Status refused = outcome(wrong);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
    EXPECT_THAT(refused.error_message(), HasSubstr("worker 3 of job job may not call Register"));
  }
  EXPECT_TRUE(outcome(Registration(proto::WORKER, 3)).ok());
  // A program with a worker also has clients.
  EXPECT_TRUE(outcome(Registration(proto::CLIENT)).ok());
  proto::RegisterRequest without_key = Registration(proto::CLIENT);
  without_key.clear_data_key();
  EXPECT_EQ(outcome(without_key).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  proto::RegisterRequest other_job = Registration(proto::CLIENT);
  other_job.set_job_name("other");
  EXPECT_FALSE(outcome(other_job).ok());
}

TEST_F(SecuredServiceTest, NobodySpeaksForAnothersNode) {
  const Node server = Register(IdentityRole::kServer);
  // A viewer may watch, but not as the server, whose calls it could use up.
  EXPECT_EQ(Watch(ChannelOf(IdentityRole::kViewer), server.header).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  // Nor does it get the server's node by repeating its registration.
  proto::RegisterRequest again = Registration(proto::CLIENT);
  again.mutable_header()->set_incarnation(server.header.incarnation());
  proto::RegisterReply reply;
  EXPECT_EQ(proto::Scheduler::NewStub(ChannelOf(IdentityRole::kClient))
                ->Register(Context().get(), again, &reply)
                .error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(SecuredServiceTest, AnotherJobIsRefused) {
  Identity stranger = Of(IdentityRole::kAdmin);
  stranger.job = "other";
  const auto stub = proto::Scheduler::NewStub(Connect(*folders_.Make(stranger)));
  proto::StatusReply reply;
  const grpc::Status refused = stub->GetStatus(Context().get(), {}, &reply);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(refused.error_message(), HasSubstr("this is job job"));
}

// An open connection outlives the certificate, and calls over it do not.
TEST_F(SecuredServiceTest, ACertificateThatExpiresEndsWhatItsConnectionMayDo) {
  const absl::Duration life = absl::Seconds(4);
  const absl::Time expires = WallClockNow() + life;
  const auto channel = Connect(*folders_.Make(Of(IdentityRole::kViewer), life));
  const auto stub = proto::Scheduler::NewStub(channel);
  proto::StatusReply reply;
  ASSERT_TRUE(stub->GetStatus(Context().get(), {}, &reply).ok());
  const auto context = Context();
  const auto stream = stub->WatchView(context.get(), {});
  proto::WatchViewReply view;
  Register(IdentityRole::kServer);
  ASSERT_TRUE(stream->Read(&view));
  grpc::Status refused;
  while (refused.ok() && WallClockNow() < expires + kPatience) {
    refused = stub->GetStatus(Context().get(), {}, &reply);
  }
  EXPECT_GE(WallClockNow(), expires - absl::Seconds(1));  // its dates are in whole seconds
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(refused.error_message(), HasSubstr("expired at"));
  // The watch learns of no later view.
  const Node later = Register(IdentityRole::kWorker);
  while (stream->Read(&view)) {
    for (const proto::Node& node : view.view().nodes()) EXPECT_NE(node.id(), later.header.node());
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(SecuredServiceTest, ACertificateThatIsRevokedEndsWhatItsConnectionMayDo) {
  const auto stub = proto::Scheduler::NewStub(ChannelOf(IdentityRole::kClient));
  proto::StatusReply reply;
  ASSERT_TRUE(stub->GetStatus(Context().get(), {}, &reply).ok());
  EXPECT_EQ(service_->callers_refused(), 0u);
  folders_.Revoke(Of(IdentityRole::kClient), tls_->folder());
  const absl::Time until = WallClockNow() + kPatience;
  grpc::Status refused;
  while (refused.ok() && WallClockNow() < until) {
    refused = stub->GetStatus(Context().get(), {}, &reply);
  }
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(refused.error_message(), HasSubstr("was revoked"));
  EXPECT_EQ(service_->callers_refused(), 1u);
  EXPECT_TRUE(proto::Scheduler::NewStub(ChannelOf(IdentityRole::kViewer))
                  ->GetStatus(Context().get(), {}, &reply)
                  .ok());
}

TEST_F(SecuredServiceTest, NobodyIsServedWithoutACertificate) {
  const auto stub = proto::Scheduler::NewStub(grpc::CreateChannel(
      absl::StrCat("127.0.0.1:", service_->port()), grpc::InsecureChannelCredentials()));
  proto::StatusReply reply;
  EXPECT_EQ(stub->GetStatus(Context().get(), {}, &reply).error_code(),
            grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace covey::scheduler
