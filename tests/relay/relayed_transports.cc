// SPDX-License-Identifier: Apache-2.0

// The suite that every transport passes (common/net/transport_conformance.h), over ZeroMQ between
// machines: each transport listens and connects in a network namespace of its own.
//   relayed_transports ADDRESS=NAMESPACE_PATH ADDRESS=NAMESPACE_PATH ADDRESS=NAMESPACE_PATH

#include <fcntl.h>
#include <sched.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/check.h"
#include "common/base/descriptor.h"
#include "common/net/transport_conformance.h"
#include "common/net/zmq_transport.h"

namespace covey {
namespace {

struct Machine {
  std::string address;
  std::string namespace_path;
};
std::vector<Machine> machines;

// The calling thread, and those that it starts, are in a network namespace meanwhile.
class InNamespace {
 public:
  explicit InNamespace(const std::string& path) : home_(Open("/proc/thread-self/ns/net")) {
    Enter(Open(path));
  }
  ~InNamespace() { Enter(home_); }

 private:
  static Descriptor Open(const std::string& path) {
    Descriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    COVEY_CHECK(descriptor.open());
    return descriptor;
  }
  static void Enter(const Descriptor& descriptor) {
    COVEY_CHECK(setns(descriptor.number(), CLONE_NEWNET) == 0);
  }

  const Descriptor home_;
};

class RelayedNetwork : public ConformanceNetwork {
 public:
  std::unique_ptr<Transport> Make(const Options& options) override {
    const Machine& machine = machines[made_++ % machines.size()];
    // The transport's own thread connects, and stays where it was started.
    const InNamespace inside(machine.namespace_path);
    auto transport = MakeZmqTransport(
        {.listen = options.listens ? absl::StrCat("tcp://", machine.address, ":0") : "",
         .queue_messages = options.queue_messages});
    EXPECT_TRUE(transport.ok()) << transport.status();
    if (!options.listens) {
      // It has no thread before its first route.
      const Address nobody{NodeId(99), 0};
      (*transport)->SetRoute(nobody, absl::StrCat("tcp://", machine.address, ":9"));
      (*transport)->DropRoute(nobody);
    }
    return *std::move(transport);
  }
  std::string DeadEndpoint() override { return Make({})->endpoint(); }
  // Packets are lost, and sent again after up to some seconds.
  absl::Duration Patience() const override { return absl::Minutes(2); }

 private:
  size_t made_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Relayed, TransportConformance,
                         testing::Values([] { return std::make_unique<RelayedNetwork>(); }));

}  // namespace
}  // namespace covey

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::vector<std::string> parts = absl::StrSplit(argv[i], '=');
    COVEY_CHECK(parts.size() == 2);
    covey::machines.push_back({.address = parts[0], .namespace_path = parts[1]});
  }
  COVEY_CHECK(covey::machines.size() >= 3);
  return RUN_ALL_TESTS();
}
