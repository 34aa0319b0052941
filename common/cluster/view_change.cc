// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/view_change.h"

#include <google/protobuf/util/field_mask_util.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey {
namespace {

using google::protobuf::FieldMask;
using google::protobuf::RepeatedField;
using google::protobuf::RepeatedPtrField;

// Of every field except the lists that a change cuts down.
FieldMask MaskOfOtherFields() {
  FieldMask mask;
  const google::protobuf::Descriptor& view = *proto::ClusterView::descriptor();
  for (int i = 0; i < view.field_count(); ++i) {
    const int number = view.field(i)->number();
    if (number == proto::ClusterView::kNodesFieldNumber ||
        number == proto::ClusterView::kGroupsFieldNumber ||
        number == proto::ClusterView::kTablesFieldNumber) {
      continue;
    }
    mask.add_paths(view.field(i)->name());
  }
  return mask;
}

// Whether the things differ. The strings are memory for their bytes.
template <typename Item>
bool Differ(const Item& a, const Item& b, std::string& bytes_of_a, std::string& bytes_of_b) {
  if (a.ByteSizeLong() != b.ByteSizeLong()) return true;
  bytes_of_a.clear();
  bytes_of_b.clear();
  return !a.AppendPartialToString(&bytes_of_a) || !b.AppendPartialToString(&bytes_of_b) ||
         bytes_of_a != bytes_of_b;
}

template <typename Item, typename Id>
void Compare(const RepeatedPtrField<Item>& before, const RepeatedPtrField<Item>& after,
             RepeatedPtrField<Item>& changed, RepeatedField<Id>& gone) {
  std::string bytes_before;
  std::string bytes_after;
  auto old = before.begin();
  for (const Item& item : after) {
    for (; old != before.end() && old->id() < item.id(); ++old) gone.Add(old->id());
    const bool is_listed = old != before.end() && old->id() == item.id();
    if (!is_listed || Differ(*old, item, bytes_before, bytes_after)) *changed.Add() = item;
    if (is_listed) ++old;
  }
  for (; old != before.end(); ++old) gone.Add(old->id());
}

// Whether both lists grow, and no id is in both.
template <typename Item, typename Id>
absl::Status CheckIds(absl::string_view kind, const RepeatedPtrField<Item>& changed,
                      const RepeatedField<Id>& gone) {
  const auto not_growing = [](const Item& a, const Item& b) { return a.id() >= b.id(); };
  bool good = std::adjacent_find(changed.begin(), changed.end(), not_growing) == changed.end() &&
              std::adjacent_find(gone.begin(), gone.end(), std::greater_equal<Id>()) == gone.end();
  for (auto item = changed.begin(); good && item != changed.end(); ++item) {
    good = !std::binary_search(gone.begin(), gone.end(), item->id());
  }
  if (good) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("change of the view: the ids of its ", kind, " do not grow"));
}

absl::Status Check(const proto::ViewChange& change) {
  const proto::ClusterView& changed = change.changed();
  if (changed.epoch() <= change.since()) {
    return absl::InvalidArgumentError(
        absl::StrCat("change of the view: from epoch ", change.since(), " to ", changed.epoch()));
  }
  COVEY_RETURN_IF_ERROR(CheckIds("nodes", changed.nodes(), change.gone_nodes()));
  COVEY_RETURN_IF_ERROR(CheckIds("groups", changed.groups(), change.gone_groups()));
  return CheckIds("tables", changed.tables(), change.gone_tables());
}

// Puts those of `older` that are neither changed nor gone among the changed ones.
template <typename Item, typename Id>
void Complete(RepeatedPtrField<Item>& older, const RepeatedField<Id>& gone,
              RepeatedPtrField<Item>& changed) {
  RepeatedPtrField<Item> all;
  all.Reserve(older.size() + changed.size());
  auto newer = changed.begin();
  for (Item& item : older) {
    for (; newer != changed.end() && newer->id() < item.id(); ++newer) {
      *all.Add() = std::move(*newer);
    }
    const bool is_replaced = newer != changed.end() && newer->id() == item.id();
    if (!is_replaced && !std::binary_search(gone.begin(), gone.end(), item.id())) {
      *all.Add() = std::move(item);
    }
  }
  for (; newer != changed.end(); ++newer) *all.Add() = std::move(*newer);
  changed.Swap(&all);
}

// Adds to the things that are gone those that were gone before, unless they are back.
template <typename Item, typename Id>
void AddGone(const RepeatedField<Id>& before, const RepeatedPtrField<Item>& changed,
             RepeatedField<Id>& gone) {
  RepeatedField<Id> all;
  std::set_union(before.begin(), before.end(), gone.begin(), gone.end(),
                 google::protobuf::RepeatedFieldBackInserter(&all));
  gone.Clear();
  for (const Id id : all) {
    const auto at =
        std::lower_bound(changed.begin(), changed.end(), id,
                         [](const Item& item, Id wanted) { return item.id() < wanted; });
    if (at == changed.end() || at->id() != id) gone.Add(id);
  }
}

// As Complete, for all lists of a view.
void CompleteAll(proto::ClusterView& older, proto::ViewChange& change) {
  proto::ClusterView& changed = *change.mutable_changed();
  Complete(*older.mutable_nodes(), change.gone_nodes(), *changed.mutable_nodes());
  Complete(*older.mutable_groups(), change.gone_groups(), *changed.mutable_groups());
  Complete(*older.mutable_tables(), change.gone_tables(), *changed.mutable_tables());
}

}  // namespace

proto::ViewChange MakeViewChange(const proto::ClusterView& before,
                                 const proto::ClusterView& after) {
  proto::ViewChange change;
  change.set_since(before.epoch());
  proto::ClusterView& changed = *change.mutable_changed();
  google::protobuf::util::FieldMaskUtil::MergeMessageTo(after, MaskOfOtherFields(), {}, &changed);
  Compare(before.nodes(), after.nodes(), *changed.mutable_nodes(), *change.mutable_gone_nodes());
  Compare(before.groups(), after.groups(), *changed.mutable_groups(),
          *change.mutable_gone_groups());
  Compare(before.tables(), after.tables(), *changed.mutable_tables(),
          *change.mutable_gone_tables());
  return change;
}

absl::StatusOr<proto::ClusterView> ApplyViewChange(proto::ClusterView before,
                                                   proto::ViewChange change) {
  if (change.since() != before.epoch()) {
    return absl::InvalidArgumentError(absl::StrCat("change of the view: since epoch ",
                                                   change.since(), ", and the view is of ",
                                                   before.epoch()));
  }
  COVEY_RETURN_IF_ERROR(Check(change));
  CompleteAll(before, change);
  proto::ClusterView& after = *change.mutable_changed();
  if (after.nodes_size() > static_cast<int>(kNodesMax) ||
      after.tables_size() > static_cast<int>(kTablesMax)) {
    return absl::InvalidArgumentError(absl::StrCat("change of the view: to ", after.nodes_size(),
                                                   " nodes and ", after.tables_size(),
                                                   " tables, more than the limits allow"));
  }
  return std::move(after);
}

absl::StatusOr<proto::ViewChange> MergeViewChanges(proto::ViewChange earlier,
                                                   proto::ViewChange later) {
  if (later.since() != earlier.changed().epoch()) {
    return absl::InvalidArgumentError(absl::StrCat("change of the view: since epoch ",
                                                   later.since(), ", after a change to ",
                                                   earlier.changed().epoch()));
  }
  COVEY_RETURN_IF_ERROR(Check(earlier));
  COVEY_RETURN_IF_ERROR(Check(later));
  CompleteAll(*earlier.mutable_changed(), later);
  const proto::ClusterView& changed = later.changed();
  AddGone(earlier.gone_nodes(), changed.nodes(), *later.mutable_gone_nodes());
  AddGone(earlier.gone_groups(), changed.groups(), *later.mutable_gone_groups());
  AddGone(earlier.gone_tables(), changed.tables(), *later.mutable_gone_tables());
  later.set_since(earlier.since());
  return later;
}

}  // namespace covey
