// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "worker/group/member_hello.h"

namespace covey::worker {

// How all members of a group learn what each of them says, once.
//
//   up to kDirectMax members: each tells every other one
//   more: in log2 N steps; in the step of distance d = 1, 2, 4, ... a member tells the one d ranks
//   before it what it knows of itself and the next d - 1 ranks, as soon as it knows all of it
//
// Nothing is sent twice: when a message is lost, the exchange does not end, and the caller begins
// another one. Actor-confined. Deterministic.
class HelloExchange {
 public:
  static constexpr uint32_t kDirectMax = 32;

  // Forgets what was said before. Members that are ahead may be heard before Say.
  void Begin(uint32_t rank, uint32_t size);
  // Once. Precondition: hello.rank is the own rank.
  void Say(MemberHello hello);
  // What another member says, or said to the sender. The first hello of a rank counts, and the own
  // one is known best here. Precondition: hello.rank is below the group's size.
  void Hear(MemberHello hello);

  struct Outgoing {
    uint32_t peer = 0;
    std::vector<const MemberHello*> hellos;  // valid until Begin
  };
  // What is to be sent since the last call.
  std::vector<Outgoing> TakeOutgoing();

  // All members have said their words, this one too.
  bool complete() const { return known_ == hellos_.size(); }
  // Ranks of the members that have not been heard, in growing order.
  std::vector<uint32_t> Missing() const;
  // By rank. Precondition: complete().
  const MemberHello& of(uint32_t rank) const { return *hellos_[rank]; }

 private:
  void Keep(MemberHello hello);
  bool Knows(uint32_t first, uint32_t count) const;

  uint32_t rank_ = 0;
  std::vector<std::optional<MemberHello>> hellos_;  // by rank
  size_t known_ = 0;
  uint32_t distance_ = 1;  // of the next step
};

}  // namespace covey::worker
