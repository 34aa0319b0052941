// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <utility>

#include "client/cli/simulate/exchange.h"
#include "common/cluster/limits.h"

namespace covey::cli {
namespace {

// More pieces per section would not change how its hops overlap.
constexpr uint32_t kSlicesMax = 64;

// Walks the trees of a membership slice by slice, as the workers' runner does: a member passes a
// slice on as soon as all inputs of its place in the tree have arrived.
class MessageExchange final : public Exchange,
                              public std::enable_shared_from_this<MessageExchange> {
 public:
  MessageExchange(ExchangeWorld world, std::shared_ptr<const Membership> membership,
                  Options options, Listener listener)
      : world_(world),
        membership_(std::move(membership)),
        options_(options),
        listener_(std::move(listener)),
        trees_(*membership_->trees),
        size_(membership_->size()) {
    const uint32_t sections = trees_.sections();
    const double section_bytes = options.bytes / sections;
    slices_ = static_cast<uint32_t>(std::clamp(std::ceil(section_bytes / kSliceBytesMax), 1.0,
                                               static_cast<double>(kSlicesMax)));
    slice_bytes_ = section_bytes / slices_;
    outgoing_.resize(size_);
    slices_to_reduce_.assign(size_, trees_.stripes() * slices_);
    slices_to_gather_.assign(size_, sections * slices_);
    waiting_.reserve(size_t{sections} * slices_ * size_);
    for (uint32_t section = 0; section < sections; ++section) {
      for (uint32_t slice = 0; slice < slices_; ++slice) {
        for (uint32_t rank = 0; rank < size_; ++rank) {
          waiting_.push_back(trees_.at(section, rank).operands);
        }
      }
    }
  }

  void Submit(uint32_t rank) override {
    // The member's own part comes last, since all others need theirs first.
    const uint32_t sections = trees_.sections();
    for (uint32_t i = 0; i < sections; ++i) {
      const uint32_t section = ((rank + 1) * trees_.stripes() + i) % sections;
      for (uint32_t slice = 0; slice < slices_; ++slice) Add(section, slice, rank);
    }
  }

  void Answer() override {
    answered_ = true;
    for (uint32_t owner = 0; owner < size_; ++owner) {
      if (slices_to_reduce_[owner] == 0) Return(owner);
    }
  }

 private:
  // One piece of a section, moving up a reduction tree or down a spreading one.
  struct Slice {
    uint32_t section = 0;
    uint32_t slice = 0;
    bool spreads = false;
  };

  // The slices that a rank has to send.
  struct Outgoing {
    // Peers with queued slices, in the order of their turns.
    std::deque<uint32_t> peers;
    std::map<uint32_t, std::deque<Slice>> queues;
    bool scheduled = false;
  };

  double part_bytes() const { return options_.bytes / size_; }

  // One of the operands of `rank` has arrived.
  void Add(uint32_t section, uint32_t slice, uint32_t rank) {
    uint32_t& waiting = waiting_[(size_t{section} * slices_ + slice) * size_ + rank];
    if (--waiting > 0) return;
    const std::optional<uint32_t> parent = trees_.at(section, rank).parent;
    if (!parent.has_value()) {
      if (--slices_to_reduce_[rank] == 0) OnReduced(rank);
      return;
    }
    Send(rank, *parent, {.section = section, .slice = slice, .spreads = false});
  }

  void OnReduced(uint32_t owner) {
    if (++owners_reduced_ == size_) listener_.reduced();
    if (options_.push) {
      const absl::Time arrival = world_.fabric.SendToServers(
          world_.simulator.now(), membership_->nodes[owner], part_bytes());
      world_.simulator.At(arrival, [self = shared_from_this()] {
        if (++self->owners_arrived_ == self->size_) self->listener_.arrived();
      });
    }
    if (!options_.await) {
      Spread(owner);
    } else if (answered_) {
      Return(owner);
    }
  }

  void Return(uint32_t owner) {
    const absl::Time arrival = world_.fabric.SendFromServers(
        world_.simulator.now(), membership_->nodes[owner], part_bytes());
    world_.simulator.At(arrival, [self = shared_from_this(), owner] { self->Spread(owner); });
  }

  void Spread(uint32_t owner) {
    if (++owners_returned_ == size_) listener_.returned();
    const uint32_t stripes = trees_.stripes();
    for (uint32_t section = owner * stripes; section < (owner + 1) * stripes; ++section) {
      for (uint32_t slice = 0; slice < slices_; ++slice) Take(section, slice, owner);
    }
  }

  // `rank` has the values of a slice.
  void Take(uint32_t section, uint32_t slice, uint32_t rank) {
    for (const uint32_t child : trees_.at(section, rank).children) {
      Send(rank, child, {.section = section, .slice = slice, .spreads = true});
    }
    if (--slices_to_gather_[rank] == 0) listener_.gathered(rank);
  }

  // Waits for the sender's loop. Slices that are ready for a peer at its turn are sent together, as
  // the workers' runner does.
  void Send(uint32_t from, uint32_t to, const Slice& slice) {
    Outgoing& outgoing = outgoing_[from];
    std::deque<Slice>& queue = outgoing.queues[to];
    if (queue.empty()) outgoing.peers.push_back(to);
    queue.push_back(slice);
    if (std::exchange(outgoing.scheduled, true)) return;
    world_.simulator.After(absl::ZeroDuration(),
                           [self = shared_from_this(), from] { self->SendNext(from); });
  }

  void SendNext(uint32_t from) {
    const absl::Time now = world_.simulator.now();
    const auto again = [self = shared_from_this(), from] { self->SendNext(from); };
    const uint32_t node = membership_->nodes[from];
    // Messages that arrived in the meantime go first.
    if (world_.fabric.LoopFree(node) > now) {
      world_.simulator.At(world_.fabric.LoopFree(node), again);
      return;
    }
    Outgoing& outgoing = outgoing_[from];
    const uint32_t to = outgoing.peers.front();
    outgoing.peers.pop_front();
    std::deque<Slice>& queue = outgoing.queues[to];
    std::vector<Slice> slices;
    // Reductions and values are different messages, and each has a limit.
    do {
      slices.push_back(queue.front());
      queue.pop_front();
    } while (!queue.empty() && queue.front().spreads == slices.front().spreads &&
             static_cast<double>(slices.size() + 1) * slice_bytes_ <= kSliceBytesMax);
    if (!queue.empty()) outgoing.peers.push_back(to);
    const absl::Time there = world_.fabric.Send(now, node, membership_->nodes[to],
                                                slice_bytes_ * static_cast<double>(slices.size()));
    world_.simulator.At(there, [self = shared_from_this(), to, slices = std::move(slices)] {
      Simulator& simulator = self->world_.simulator;
      const absl::Time done =
          self->world_.fabric.Receive(simulator.now(), self->membership_->nodes[to]);
      simulator.At(done, [self, to, slices] { self->OnMessage(to, slices); });
    });
    outgoing.scheduled = !outgoing.peers.empty();
    if (outgoing.scheduled) world_.simulator.At(world_.fabric.LoopFree(node), again);
  }

  void OnMessage(uint32_t rank, const std::vector<Slice>& slices) {
    for (const Slice& slice : slices) {
      if (slice.spreads) {
        Take(slice.section, slice.slice, rank);
      } else {
        Add(slice.section, slice.slice, rank);
      }
    }
  }

  const ExchangeWorld world_;
  const std::shared_ptr<const Membership> membership_;
  const Options options_;
  const Listener listener_;
  const Trees& trees_;
  const uint32_t size_;
  uint32_t slices_ = 1;  // of each section
  double slice_bytes_ = 0;

  std::vector<uint32_t> waiting_;           // operands, per section, slice and rank
  std::vector<uint32_t> slices_to_reduce_;  // per owner
  std::vector<uint32_t> slices_to_gather_;  // per rank
  std::vector<Outgoing> outgoing_;          // per rank
  uint32_t owners_reduced_ = 0;
  uint32_t owners_arrived_ = 0;
  uint32_t owners_returned_ = 0;
  bool answered_ = false;
};

}  // namespace

std::shared_ptr<Exchange> MakeMessageExchange(ExchangeWorld world,
                                              std::shared_ptr<const Membership> membership,
                                              Exchange::Options options,
                                              Exchange::Listener listener) {
  return std::make_shared<MessageExchange>(world, std::move(membership), options,
                                           std::move(listener));
}

}  // namespace covey::cli
