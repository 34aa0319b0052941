// SPDX-License-Identifier: Apache-2.0
#include "server/shard/push_checks.h"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/optimizer/kernels.h"
#include "common/optimizer/learning_rate.h"
#include "common/tensor/wire_format_proto.h"

namespace covey::server {
namespace {

// A sender that is missing from this view may be in the newer view that it knows.
absl::Status Unknown(const std::string& sender, const Message& request, const ClusterView& view) {
  const Epoch epoch(request.envelope.header().epoch());
  if (view.epoch() < epoch) {
    return absl::UnavailableError(absl::StrCat("view epoch ", view.epoch().value(),
                                               " is older than ", epoch.value(), " and lacks ",
                                               sender, ", retry"));
  }
  return absl::InvalidArgumentError(absl::StrCat(sender, " is not in the view of epoch ",
                                                 view.epoch().value(),
                                                 "; register with the scheduler first"));
}

absl::Status CheckClient(const Message& request, const ClusterView& view) {
  const proto::Node* node = view.FindNode(request.from().node);
  if (node == nullptr) {
    return Unknown(absl::StrCat("node ", request.from().node.value()), request, view);
  }
  if (node->state() == proto::Node::ALIVE) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      node->name(), " is ", node->state() == proto::Node::DEAD ? "declared dead" : "gone",
      " since epoch ", view.epoch().value(), " or before; join the cluster again"));
}

absl::Status CheckGroup(const Message& request, const ClusterView& view) {
  const proto::PushRequest& push = request.envelope.push_request();
  const bool is_behind = view.epoch() < Epoch(request.envelope.header().epoch());
  const proto::Group* group = view.FindGroup(GroupId(push.group()));
  if (group == nullptr || (group->generation() < push.group_generation() && is_behind)) {
    return Unknown(absl::StrCat("group ", push.group(), " generation ", push.group_generation()),
                   request, view);
  }
  // An older generation may finish its last step: PushHistory refuse it from the newer one's first
  // push on.
  if (group->generation() < push.group_generation()) {
    return absl::AbortedError(absl::StrCat("group ", push.group(), " has generation ",
                                           group->generation(), ", the push has ",
                                           push.group_generation(), "; follow the newer view"));
  }
  // A worker that has left the group may still repeat what it pushed as a member, and it is not
  // known here any more who was one. Departed workers stay in the view, so a sender that is missing
  // from it has never been one, or is newer than this view.
  const proto::Node* sender = view.FindNode(request.from().node);
  if (sender == nullptr) {
    return Unknown(absl::StrCat("node ", request.from().node.value()), request, view);
  }
  if (sender->role() != proto::WORKER) {
    return absl::PermissionDeniedError(absl::StrCat(sender->name(), " is no member of group ",
                                                    push.group(),
                                                    "; a group's gradients are pushed by workers"));
  }
  if (group->state() == proto::Group::ACTIVE) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("group ", push.group(),
                                         group->state() == proto::Group::BROKEN
                                             ? absl::StrCat(" is broken: ", group->reason())
                                             : std::string(" has left the job")));
}

absl::Status CheckFrames(const Message& request, WireFormat format, const PushForm& form) {
  const proto::PushRequest& push = request.envelope.push_request();
  if (push.has_outer_product()) {
    if (push.initialization_epoch() != 0) {
      return absl::InvalidArgumentError(
          "initial values are elements; push them without factors of a gradient");
    }
    COVEY_RETURN_IF_ERROR(CheckOuterProduct(push.outer_product(), format, form.shape));
  }
  if (IsQuery(request)) return absl::OkStatus();
  const size_t terms = push.outer_product().terms();
  const size_t wanted = DenseFrameBytes(format, form.shape, terms);
  const auto fits = [wanted](const Buffer& frame) { return frame.size() == wanted; };
  if (request.frames.size() == form.frames &&
      std::all_of(request.frames.begin(), request.frames.end(), fits)) {
    return absl::OkStatus();
  }
  size_t bytes = 0;
  for (const Buffer& frame : request.frames) bytes += frame.size();
  return absl::InvalidArgumentError(absl::StrCat(
      "the gradient has ", bytes, " bytes in ", request.frames.size(), " frames, the shard has ",
      wanted, " bytes as ", WireFormatName(format),
      terms == 0 ? std::string() : absl::StrCat(" for factors of ", terms, " terms"), "; push ",
      form.frames == 1 ? std::string("one frame") : absl::StrCat(form.frames, " frames"),
      " of the shard's size"));
}

// Whether the only frame has a row for each key that the push names.
bool AreRowsOfNamed(const Message& request, WireFormat format, const GradientShape& shape) {
  const proto::KeyList& keys = request.envelope.push_request().keys();
  return IsNamed(keys) && request.frames.size() == 1 &&
         request.frames[0].size() == EncodedRowBytes(format, shape.row_width, keys.count());
}

absl::Status CheckKeyedFrames(const Message& request, WireFormat format,
                              const GradientShape& shape) {
  const proto::PushRequest& push = request.envelope.push_request();
  if (!push.has_keys()) {
    return absl::InvalidArgumentError("the table is sparse; push the rows of some keys");
  }
  if (IsQuery(request) || AreRowsOfNamed(request, format, shape) ||
      AreGradientFrames(request, push.format(), push.keys(), shape)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the push names ", push.keys().count(), " keys, and has ", request.frames.size(),
                   " frames; push two, the keys and a row of ", shape.row_width, " elements as ",
                   WireFormatName(format), " for each, of at most ", kKeysPerRequestMax, " keys"));
}

absl::Status CheckGradient(const Message& request, const PushForm& form) {
  const proto::PushRequest& push = request.envelope.push_request();
  const std::optional<WireFormat> format = WireFormatFromProto(push.format());
  if (!format.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("wire format ", static_cast<int>(push.format()),
                     " is not known here; use one of tensor.proto, or run servers of the client's "
                     "version"));
  }
  if (!form.shape.is_sparse() && push.has_keys()) {
    return absl::InvalidArgumentError("the table is dense; push a gradient of all its elements");
  }
  if (form.shape.is_sparse() && push.has_outer_product()) {
    return CheckOuterProduct(push.outer_product(), *format, form.shape);
  }
  COVEY_RETURN_IF_ERROR(form.shape.is_sparse() ? CheckKeyedFrames(request, *format, form.shape)
                                               : CheckFrames(request, *format, form));
  const uint64_t samples_min = push.group() == 0 ? 1 : 0;
  if (push.samples() < samples_min || push.samples() > kShardSamplesMax - form.samples_so_far) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the push stands for ", push.samples(), " samples after ", form.samples_so_far,
        "; push at least ", samples_min, ", and at most ", kShardSamplesMax, " in all"));
  }
  if (push.has_rate_factor() && !IsRateFactor(push.rate_factor())) {
    return absl::InvalidArgumentError(
        absl::StrCat("the push multiplies the learning rate by ", push.rate_factor(),
                     "; use at least 0, and at most ", kRateFactorMax));
  }
  return absl::OkStatus();
}

// Functions come in place of a gradient, with nothing that belongs to one.
absl::Status CheckCall(const Message& request) {
  const proto::PushRequest& push = request.envelope.push_request();
  const bool has_gradient = !request.frames.empty() || push.has_keys() || push.samples() != 0 ||
                            push.has_rate_factor() || push.initialization_epoch() != 0 ||
                            push.has_outer_product();
  if (!has_gradient && push.group() == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the push has functions, and ",
                   has_gradient ? "a gradient or initial values" : "comes from a group",
                   "; push functions alone, from a plain client"));
}

}  // namespace

std::string NameOf(const Producer& producer, const ClusterView& view) {
  if (producer.kind == Producer::Kind::kGroup) return absl::StrCat("group ", producer.id);
  return view.NameOf(NodeId(producer.id));
}

bool IsGone(const Producer& producer, const ClusterView& view) {
  if (producer.kind == Producer::Kind::kGroup) {
    const proto::Group* group = view.FindGroup(GroupId(static_cast<uint32_t>(producer.id)));
    return group == nullptr || group->state() != proto::Group::ACTIVE;
  }
  return !view.IsAlive(NodeId(producer.id));
}

bool IsQuery(const Message& request) {
  if (!request.envelope.has_push_request()) return false;
  const proto::PushRequest& push = request.envelope.push_request();
  if (!push.functions().empty()) return false;
  if (!push.has_keys()) return request.frames.empty();
  return push.keys().count() > 0 && request.frames.size() < (IsNamed(push.keys()) ? 1 : 2);
}

absl::Status CheckForm(const Message& request, const PushForm& form) {
  const proto::PushRequest& push = request.envelope.push_request();
  const proto::PushId& id = push.id();
  COVEY_RETURN_IF_ERROR(push.functions().empty() ? CheckGradient(request, form)
                                                 : CheckCall(request));
  if (id.sequence() > kPushSequenceMax || push.step() > kPushSequenceMax) {
    return absl::InvalidArgumentError(absl::StrCat("the push has sequence ", id.sequence(),
                                                   " and step ", push.step(), "; the most is ",
                                                   kPushSequenceMax, "; count both from 1"));
  }
  const bool consistent = id.producer_kind() == proto::PushId::GROUP
                              ? push.group() != 0 && push.group() == id.producer() &&
                                    push.group_generation() == id.producer_incarnation() &&
                                    push.step() == id.sequence()
                              : id.producer_kind() == proto::PushId::CLIENT && push.group() == 0 &&
                                    id.producer() == request.from().node.value();
  if (id.sequence() == 0 || !consistent) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the push id (producer ", id.producer(), ", sequence ", id.sequence(),
        ") does not fit its sender: node ", request.from().node.value(), ", group ", push.group(),
        ", step ", push.step(), "; this is a bug of the pushing library"));
  }
  return absl::OkStatus();
}

absl::Status CheckSender(const Message& request, const ClusterView& view) {
  return request.envelope.push_request().group() == 0 ? CheckClient(request, view)
                                                      : CheckGroup(request, view);
}

absl::Status CheckFinite(const Gradient& gradient, const ShardContent& content,
                         const proto::PushRequest& push, const ClusterView& view) {
  const std::optional<size_t> bad = FirstNonFinite(gradient.elements);
  if (!bad) return absl::OkStatus();
  const SparseShard* const rows = content.sparse();
  const std::string place = rows == nullptr
                                ? absl::StrCat("element ", *bad, " of the shard (element ",
                                               content.first_element() + *bad, " of the table)")
                                : absl::StrCat("column ", *bad % rows->width(), " of key ",
                                               gradient.keys[*bad / rows->width()]);
  return absl::InvalidArgumentError(absl::StrCat(
      NameOf(KeyOf(push.id()).producer, view), " pushed ", gradient.elements[*bad], " at ", place,
      ", step ", push.id().sequence(),
      "; nothing was applied; look at the loss and the learning rate of that producer"));
}

}  // namespace covey::server
