// SPDX-License-Identifier: Apache-2.0

// What running collectives costs besides the network: all members in one thread, over the loopback
// transport, which hands messages over as they are.
// bazel run --config=opt //worker/collective:collective_bench

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "common/base/check.h"
#include "common/net/loopback_transport.h"
#include "worker/group/communicator.h"

namespace covey::worker {
namespace {

constexpr uint64_t kFirstNode = 10;

class Members {
 public:
  explicit Members(uint32_t size) {
    proto::ClusterView view;
    view.set_epoch(1);
    proto::Group& group = *view.add_groups();
    group.set_id(1);
    group.set_generation(1);
    group.set_state(proto::Group::ACTIVE);
    for (uint32_t rank = 0; rank < size; ++rank) {
      proto::Node& node = *view.add_nodes();
      node.set_id(kFirstNode + rank);
      node.set_incarnation(1);
      node.set_role(proto::WORKER);
      node.set_state(proto::Node::ALIVE);
      node.set_rank(rank);
      node.set_name(absl::StrCat("worker-", rank));
      node.set_labels(absl::StrCat("z/r", rank % 2, "/h", rank));
      node.add_endpoints(absl::StrCat("loopback://", rank));
      group.add_members(node.id());
      nodes_.push_back({.communicator = std::make_unique<Communicator>(
                            Communicator::Options{.rendezvous = RendezvousMode::kAtOnce}),
                        .transport = hub_.MakeTransport(absl::StrCat(rank))});
    }
    const auto made = *ClusterView::Make(std::move(view));
    for (uint32_t rank = 0; rank < size; ++rank) {
      nodes_[rank].communicator->SetView(now_, NodeId(kFirstNode + rank), made,
                                         nodes_[rank].outbox);
    }
  }

  // One collective on all members, to the end.
  void Run(const Collective& common, std::vector<std::vector<float>>& data) {
    size_t done = 0;
    for (size_t rank = 0; rank < nodes_.size(); ++rank) {
      Node& node = nodes_[rank];
      Collective collective = common;
      collective.id = node.communicator->NextPlain();
      collective.data = data[rank];
      collective.done = [&done](absl::Time, const CollectiveResult& result, Outbox&) {
        COVEY_CHECK(result.status.ok());
        ++done;
      };
      node.communicator->Start(now_, std::move(collective), node.outbox);
    }
    while (done < nodes_.size()) {
      for (size_t rank = 0; rank < nodes_.size(); ++rank) Turn(rank);
    }
  }

 private:
  struct Node {
    std::unique_ptr<Communicator> communicator;
    std::unique_ptr<Transport> transport;
    Outbox outbox;
  };

  void Turn(size_t rank) {
    Node& node = nodes_[rank];
    for (const auto& [peer, endpoint] : node.outbox.TakeRoutes()) {
      node.transport->SetRoute(peer, endpoint);
    }
    for (Message& message : node.outbox.TakeMessages()) {
      message.envelope.mutable_header()->set_node(kFirstNode + rank);
      message.envelope.mutable_header()->set_incarnation(1);
      node.transport->Send(std::move(message));
    }
    node.transport->Wait(absl::ZeroDuration());
    node.transport->Receive(
        1000, [&](Message message) { node.communicator->Receive(now_, message, node.outbox); });
    node.communicator->Wake(now_, node.outbox);
  }

  absl::Time now_ = absl::UnixEpoch();
  LoopbackHub hub_;
  std::vector<Node> nodes_;
};

// Arguments: members, algorithm, elements, format. Bytes are those of the tensor.
void BM_AllReduce(benchmark::State& state) {
  const auto size = static_cast<uint32_t>(state.range(0));
  const auto elements = static_cast<size_t>(state.range(2));
  Members members(size);
  std::vector<std::vector<float>> data(size, std::vector<float>(elements));
  const Collective collective{.kind = CollectiveKind::kAllReduce,
                              .parts = EvenParts(elements, size),
                              .algorithm = static_cast<Algorithm>(state.range(1)),
                              .format = static_cast<WireFormat>(state.range(3))};
  for (auto _ : state) members.Run(collective, data);
  state.SetLabel(
      absl::StrCat(AlgorithmName(collective.algorithm), " ", WireFormatName(collective.format)));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(elements * sizeof(float)));
}
BENCHMARK(BM_AllReduce)
    ->ArgNames({"members", "algorithm", "elements", "format"})
    ->ArgsProduct({{2, 8}, {1, 2, 3, 4, 5, 6}, {1 << 10, 1 << 22}, {0}})
    ->ArgsProduct({{4}, {2}, {1 << 22}, {0, 1, 2, 3}});

}  // namespace
}  // namespace covey::worker

BENCHMARK_MAIN();
