// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "proto/log.pb.h"
#include "proto/snapshot.pb.h"

namespace covey::scheduler {

// What the scheduler remembers of a snapshot that is complete, without the time of its cut. Pure.
proto::NewestSnapshot NewestSnapshotOf(const proto::SnapshotManifest& manifest);

}  // namespace covey::scheduler
