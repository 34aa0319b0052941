// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "proto/view.pb.h"

namespace covey {

// The difference between two views of one job. A death in a cluster of 10,000 nodes changes some
// hundred bytes of a view of megabytes, and every node is told.
//
// Nodes, groups and tables travel when they are new or differ; all other fields of the later view
// travel always. A table is the smallest unit: when a chain changes, all shards of its table
// travel.
//
// Pure. Bytes from outside are refused, and never fail a check.

// Precondition: ids grow in both views, and the epoch of `after` is higher. O(bytes of both).
proto::ViewChange MakeViewChange(const proto::ClusterView& before, const proto::ClusterView& after);

// The later view, byte for byte, if `change` was made with `before`. ClusterView::Make checks what
// the view says. Things that are gone and that `before` does not list are ignored: a merged change
// names what came and went.
// INVALID_ARGUMENT: `change` is not since the epoch of `before`, or not to a higher one; ids do not
// grow, or a thing is both changed and gone; the view would exceed kNodesMax or kTablesMax.
absl::StatusOr<proto::ClusterView> ApplyViewChange(proto::ClusterView before,
                                                   proto::ViewChange change);

// One change with the effect of `earlier` and then `later`, never larger than both.
// INVALID_ARGUMENT: `later` does not begin at the epoch to which `earlier` leads; or as
// ApplyViewChange.
absl::StatusOr<proto::ViewChange> MergeViewChanges(proto::ViewChange earlier,
                                                   proto::ViewChange later);

}  // namespace covey
