// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/base/transitions.h"

namespace covey::server {

// What a replica holds of its shard, and whether the view counts it as joined:
//
//               initializer                     view: joining
//     kFresh ───────────────▶ kJoined ─────────────────────────────┐
//        │                    │     ▲                              │
//        │  wrong digest, or  │     │ view: joined                 │
//        │  an unknown tail   ▼     │                              │
//        │                 kUnfit  kCatchingUp ── newer content, ──┤
//        │                  │  ▲        ▲         wrong digest     │
//        │   view: joining  │  │        │ last piece               │
//        │                  │  ├─── kImporting ── wrong pieces ────┤
//        │                  │  │        ▲                          │
//        │                  │  │        │ first piece              ▼
//        └──────────────────┼──┴────────┴───────────────────── kRequesting
//         view: joining     └──────────────────────────────────────▲
//
// A replica that requests or imports when the view calls it joined is unfit.
//
// The content of a restored shard comes from the store instead of the initializer:
//
//     kFresh ─▶ kLoading ─▶ kJoined;   to kUnfit when the store's pieces are wrong,
//                                      to kRequesting when the view says joining
enum class ReplicaState {
  kFresh,       // nothing; the initializer makes its content, or the store has it
  kLoading,     // joined; some pieces of the content have come from the store
  kRequesting,  // joining, without content: asks the server in front
  kImporting,   // joining; some pieces of the content are here
  kCatchingUp,  // joining, with content
  kJoined,      // joined, with content
  kUnfit        // joined, and its content was dropped
};

inline constexpr Transition<ReplicaState> kReplicaTransitions[] = {
    {ReplicaState::kFresh, ReplicaState::kJoined},
    {ReplicaState::kFresh, ReplicaState::kRequesting},
    {ReplicaState::kFresh, ReplicaState::kLoading},
    {ReplicaState::kLoading, ReplicaState::kJoined},
    {ReplicaState::kLoading, ReplicaState::kRequesting},
    {ReplicaState::kLoading, ReplicaState::kUnfit},
    {ReplicaState::kRequesting, ReplicaState::kRequesting},
    {ReplicaState::kRequesting, ReplicaState::kImporting},
    {ReplicaState::kRequesting, ReplicaState::kUnfit},
    {ReplicaState::kImporting, ReplicaState::kCatchingUp},
    {ReplicaState::kImporting, ReplicaState::kRequesting},
    {ReplicaState::kImporting, ReplicaState::kUnfit},
    {ReplicaState::kCatchingUp, ReplicaState::kJoined},
    {ReplicaState::kCatchingUp, ReplicaState::kRequesting},
    {ReplicaState::kJoined, ReplicaState::kRequesting},
    {ReplicaState::kJoined, ReplicaState::kUnfit},
    {ReplicaState::kUnfit, ReplicaState::kRequesting},
};

constexpr bool IsJoining(ReplicaState state) {
  return state == ReplicaState::kRequesting || state == ReplicaState::kImporting ||
         state == ReplicaState::kCatchingUp;
}

constexpr bool HasContent(ReplicaState state) {
  return state == ReplicaState::kCatchingUp || state == ReplicaState::kJoined;
}

}  // namespace covey::server
