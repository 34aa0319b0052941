// SPDX-License-Identifier: Apache-2.0
#include "common/security/tls_credentials.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_certificate_verifier.h>
#include <grpcpp/security/tls_credentials_options.h>

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/security/credential_folder.h"
#include "common/security/node_credentials.h"

namespace covey {
namespace {

namespace tls = grpc::experimental;

constexpr unsigned int kRefreshSeconds = 1;

absl::string_view ViewOf(const grpc::string_ref& text) { return {text.data(), text.size()}; }

absl::StatusOr<Identity> OneIdentity(const std::vector<grpc::string_ref>& uris) {
  if (uris.size() != 1) {
    return absl::UnauthenticatedError(
        absl::StrCat("the peer's certificate has ", uris.size(), " URIs, and must have one"));
  }
  auto identity = ParseIdentity(ViewOf(uris[0]));
  if (identity.ok()) return identity;
  return absl::UnauthenticatedError(
      absl::StrCat("the peer's certificate: ", identity.status().message()));
}

// The peers that may be at the other end of a connection.
struct Peers {
  std::string trust_domain;
  std::optional<IdentityRole> role;  // absent = any
  std::optional<std::string> job;    // absent = any
};

absl::Status CheckPeer(const Identity& peer, const Peers& allowed) {
  const auto refused = [&peer](absl::string_view why) {
    return absl::UnauthenticatedError(absl::StrCat("the peer is ", UriOf(peer), ", ", why));
  };
  if (peer.trust_domain != allowed.trust_domain) {
    return refused(absl::StrCat("and not of the trust domain ", allowed.trust_domain));
  }
  if (allowed.role.has_value() && peer.role != *allowed.role) {
    return refused(absl::StrCat("and no ", NameOf(*allowed.role)));
  }
  if (allowed.job.has_value() && peer.job != allowed.job) {
    return refused(absl::StrCat("and not of job ", *allowed.job));
  }
  return absl::OkStatus();
}

// Asked by gRPC when the chain, the dates and the usage are right.
class PeerVerifier : public tls::ExternalCertificateVerifier {
 public:
  explicit PeerVerifier(Peers allowed) : allowed_(std::move(allowed)) {}

  bool Verify(tls::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* outcome) override {
    const auto peer = OneIdentity(request->uri_names());
    const absl::Status status = peer.ok() ? CheckPeer(*peer, allowed_) : peer.status();
    *outcome = status.ok()
                   ? grpc::Status::OK
                   : grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(status.message()));
    return true;  // it is done
  }
  void Cancel(tls::TlsCustomVerificationCheckRequest*) override {}

 private:
  const Peers allowed_;
};

void Watch(tls::TlsCredentialsOptions& options, Peers allowed) {
  options.watch_root_certs();
  options.watch_identity_key_cert_pairs();
  options.set_certificate_verifier(
      tls::ExternalCertificateVerifier::Create<PeerVerifier>(std::move(allowed)));
}

}  // namespace

absl::StatusOr<TlsCredentials> TlsCredentials::Load(const std::string& folder, absl::Time now) {
  COVEY_ASSIGN_OR_RETURN(NodeCredentials node, LoadNodeCredentials(folder, now));
  return TlsCredentials(folder, std::move(node.identity),
                        std::make_shared<tls::FileWatcherCertificateProvider>(
                            PathIn(folder, kNodeKeyFile), PathIn(folder, kNodeCertificateFile),
                            PathIn(folder, kRootsFile), kRefreshSeconds));
}

std::shared_ptr<grpc::ServerCredentials> TlsCredentials::ForServer() const {
  tls::TlsServerCredentialsOptions options(provider_);
  options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  Watch(options, {.trust_domain = identity_.trust_domain});
  return tls::TlsServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> TlsCredentials::ForSchedulersOf(
    std::optional<std::string> job) const {
  tls::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(provider_);
  // Certificates name no hosts.
  options.set_check_call_host(false);
  Watch(options, {.trust_domain = identity_.trust_domain,
                  .role = IdentityRole::kScheduler,
                  .job = std::move(job)});
  return tls::TlsCredentials(options);
}

int32_t TlsCredentials::RankOr(IdentityRole role, int32_t rank) const {
  const bool has_rank = identity_.role == role && identity_.rank.has_value();
  return has_rank ? static_cast<int32_t>(*identity_.rank) : rank;
}

absl::Status WithReason(const absl::Status& status, const TlsCredentials* credentials,
                        absl::Time now) {
  if (!absl::IsUnavailable(status) || credentials == nullptr) return status;
  return absl::UnavailableError(absl::StrCat(status.message(), "; ", credentials->WhyRefused(now)));
}

std::string TlsCredentials::WhyRefused(absl::Time now) const {
  const NodeFolderReport report = InspectNodeFolder(folder_, now);
  if (!report.problems.empty()) return report.problems.front();
  return absl::StrCat(
      "or one of the two refuses the other's certificate: that in ", folder_, " is of ",
      Describe(identity_),
      "; both must be of one job and trust the same roots, both need --tls, and the "
      "clocks of their hosts must agree");
}

absl::StatusOr<std::shared_ptr<const TlsCredentials>> LoadTlsCredentials(const std::string& folder,
                                                                         const ProcessPlace& place,
                                                                         absl::Time now) {
  if (folder.empty()) return nullptr;
  COVEY_ASSIGN_OR_RETURN(TlsCredentials credentials, TlsCredentials::Load(folder, now));
  const Identity& identity = credentials.identity();
  if (identity.job == place.job && MayBe(identity, place.role, place.rank)) {
    return std::make_shared<const TlsCredentials>(std::move(credentials));
  }
  const bool is_of_other_job =
      identity.job.has_value() && *identity.job != place.job && identity.role == place.role;
  return absl::FailedPreconditionError(
      absl::StrCat("--tls: ", folder, " holds the certificate of ", Describe(identity),
                   ", and this process is ", NameOf(place.role),
                   place.rank < 0 ? "" : absl::StrCat(" ", place.rank), " of job ", place.job, "; ",
                   is_of_other_job ? absl::StrCat("give it --job ", *identity.job, ", or ") : "",
                   "make its own with: covey certificates issue CA-DIR --role ", NameOf(place.role),
                   " --job ", place.job, " --out DIR"));
}

absl::StatusOr<Identity> CallerOf(const grpc::AuthContext& context) {
  if (!context.IsPeerAuthenticated()) {
    return absl::UnauthenticatedError("the peer has shown no certificate");
  }
  return OneIdentity(context.FindPropertyValues(GRPC_PEER_URI_PROPERTY_NAME));
}

}  // namespace covey
