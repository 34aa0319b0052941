// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "common/base/transitions.h"

namespace covey::server {

// What a server knows about its successor in a shard's chain: three independent regions, each in
// exactly one state. The tables below list every legal transition; any other is a bug of ours.
//
//   Transfer: what the successor is sent
//
//     kUnknown ──filled──▶ kFilling ──replied──▶ kStreaming ◀──replied── kUnconfirmed
//        └────────────────replied─────────────────▲   └────chain changed────▲
//     kStreaming, kUnconfirmed ──filled──▶ kFilling
//     every state ──given up, rejoining──▶ kUnknown
//
//   Requirement: whether nothing is durable without the successor
//
//     kOptional ──nearly caught up──▶ kRequired ──caught up──▶ kReady ◀──caught up── kReconfirming
//       ▲   ▲──────────filled────────────┘                       └──filled, chain changed──▲
//       └──rejoining── kJoined ◀──joined── every state
//
//   Contact: whether the successor replies
//
//     kInTouch ──silent──▶ kReportedSilent ──refused──▶ kRefused
//        └─────────────────────refused────────────────────▲
//     every state ──chain changed, joined, rejoining──▶ kInTouch
class SuccessorState {
 public:
  enum class Transfer {
    kUnknown,      // it has not said yet what it holds
    kFilling,      // it gets content, in pieces
    kUnconfirmed,  // it gets records; it has not replied under this chain epoch yet
    kStreaming     // it gets records and has replied that it holds content
  };
  enum class Requirement {
    kOptional,      // joining; nothing waits for it
    kRequired,      // joining; nothing is durable without it from now on
    kReady,         // joining; it holds all that was durable when it became required
    kReconfirming,  // it was ready once, so it stays required; it has to show that it still is
    kJoined         // the view counts it as joined
  };
  enum class Contact {
    kInTouch,
    kReportedSilent,  // it owes a reply, and the scheduler has been told
    kRefused          // it follows a newer chain: nothing may count on it, nothing is sent
  };
  enum class Event {
    kChainChanged,  // a new chain epoch, in which it is what it was
    kJoined,        // a new chain epoch, in which it counts as joined
    kRejoining,     // a new chain epoch, in which it begins to join again, without content
    kFilled,        // it gets content from the first piece on
    kReplied,       // it has replied that it holds content
    kGivenUp,       // filling it holds up the log: it has to ask again
    kNearlyCaughtUp,
    kCaughtUp,
    kSilent,
    kRefused
  };
  using TransferTransition = EventTransition<Transfer, Event>;
  using RequirementTransition = EventTransition<Requirement, Event>;
  using ContactTransition = EventTransition<Contact, Event>;

  // A joined successor gets records from the beginning; a joining one is asked first.
  static SuccessorState Joined() { return {Transfer::kUnconfirmed, Requirement::kJoined}; }
  static SuccessorState Joining() { return {Transfer::kUnknown, Requirement::kOptional}; }

  // Precondition (checked): each region that knows the event has a transition for it.
  void Apply(Event event);

  Transfer transfer() const { return transfer_; }
  Requirement requirement() const { return requirement_; }
  Contact contact() const { return contact_; }

  bool is_joining() const { return requirement_ != Requirement::kJoined; }
  bool is_required() const { return requirement_ != Requirement::kOptional; }
  bool is_ready() const { return requirement_ == Requirement::kReady; }
  bool is_refused() const { return contact_ == Contact::kRefused; }
  bool gets_records() const {
    return transfer_ == Transfer::kUnconfirmed || transfer_ == Transfer::kStreaming;
  }

  static std::span<const TransferTransition> TransferTransitions();
  static std::span<const RequirementTransition> RequirementTransitions();
  static std::span<const ContactTransition> ContactTransitions();

 private:
  SuccessorState(Transfer transfer, Requirement requirement)
      : transfer_(transfer), requirement_(requirement) {}

  Transfer transfer_;
  Requirement requirement_;
  Contact contact_ = Contact::kInTouch;
};

}  // namespace covey::server
