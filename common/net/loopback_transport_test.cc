// SPDX-License-Identifier: Apache-2.0
#include "common/net/loopback_transport.h"

#include "absl/strings/str_cat.h"
#include "common/net/transport_conformance.h"

namespace covey {
namespace {

class LoopbackNetwork : public ConformanceNetwork {
 public:
  std::unique_ptr<Transport> Make(const Options& options) override {
    return hub_.MakeTransport(options.listens ? absl::StrCat("peer-", ++made_) : "");
  }
  std::string DeadEndpoint() override { return "loopback://nobody"; }

 private:
  // One hub serves all transports of a test, so all of them have the smallest queue that any test
  // with many messages asks for.
  LoopbackHub hub_{{.queue_messages = 999}};
  int made_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Loopback, TransportConformance,
                         testing::Values([] { return std::make_unique<LoopbackNetwork>(); }));

}  // namespace
}  // namespace covey
