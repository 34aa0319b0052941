// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/adasum_reduce.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "common/collective/collective_kind.h"
#include "worker/hybrid/adasum.h"

namespace covey::worker {
namespace {

// One bucket's step. Lives in the callbacks of its collectives.
class AdasumReduce : public std::enable_shared_from_this<AdasumReduce> {
 public:
  AdasumReduce(Communicator& group, uint32_t bucket, std::vector<PartRange> tensors,
               Collective reduce)
      : group_(group),
        stream_(kProductStreams + bucket),
        members_(group.size()),
        part_(reduce.parts[group.rank()]),
        tensors_(std::move(tensors)),
        reduce_(std::move(reduce)),
        rows_(part_.count * members_),
        products_(tensors_.size() * AdasumProducts(members_)) {}

  void Start(absl::Time now, Outbox& outbox) {
    Collective exchange = reduce_;
    exchange.kind = CollectiveKind::kExchange;
    exchange.algorithm = Algorithm::kDirect;
    exchange.rows = rows_;
    exchange.arrived = [self = shared_from_this()](absl::Time now, const CollectiveResult& result,
                                                   Outbox& outbox) {
      self->result_ = result;
      self->AddUpProducts(now, outbox);
    };
    Add(now, std::move(exchange), outbox);
  }

 private:
  // Starts a stage; when the last one is over, so is the whole.
  void Add(absl::Time now, Collective stage, Outbox& outbox) {
    ++under_way_;
    stage.done = [self = shared_from_this()](absl::Time now, const CollectiveResult& result,
                                             Outbox& outbox) {
      self->status_.Update(result.status);
      if (--self->under_way_ > 0) return;
      self->result_.status = self->status_;
      if (self->reduce_.done) self->reduce_.done(now, self->result_, outbox);
    };
    group_.Start(now, std::move(stage), outbox);
  }

  void AddUpProducts(absl::Time now, Outbox& outbox) {
    for (size_t t = 0; t < tensors_.size(); ++t) {
      AddProducts(rows_, members_, InPart(tensors_[t]), ProductsOf(t));
    }
    Collective sum{.id = {stream_, reduce_.id.sequence},
                   .kind = CollectiveKind::kAllReduce,
                   .name = reduce_.name,
                   .data = products_,
                   .parts = EvenParts(products_.size(), members_),
                   .deadline = reduce_.deadline,
                   .priority = reduce_.priority,
                   .is_change_point = false};
    sum.arrived = [self = shared_from_this()](absl::Time now, const CollectiveResult&,
                                              Outbox& outbox) {
      self->CombineRows();
      if (self->reduce_.arrived) self->reduce_.arrived(now, self->result_, outbox);
    };
    Add(now, std::move(sum), outbox);
  }

  void CombineRows() {
    const std::span<float> own = reduce_.data.As<float>().subspan(part_.first, part_.count);
    for (size_t t = 0; t < tensors_.size(); ++t) {
      const PartRange tensor = InPart(tensors_[t]);
      if (tensor.count == 0) continue;
      std::vector<double> factors = AdasumCoefficients(ProductsOf(t), members_);
      for (double& factor : factors) factor *= static_cast<double>(result_.samples);
      SumRows(rows_, factors, tensor, own.subspan(tensor.first, tensor.count));
    }
  }

  // What of the tensor is in the own part, counted from the part's first element.
  PartRange InPart(const PartRange& tensor) const {
    const size_t first = std::max(tensor.first, part_.first);
    const size_t end = std::min(tensor.first + tensor.count, part_.first + part_.count);
    if (end <= first) return {};
    return {.first = first - part_.first, .count = end - first};
  }
  std::span<double> ProductsOf(size_t tensor) {
    const size_t count = AdasumProducts(members_);
    return std::span(products_).subspan(tensor * count, count);
  }

  Communicator& group_;
  const uint32_t stream_;
  const uint32_t members_;
  const PartRange part_;
  const std::vector<PartRange> tensors_;
  const Collective reduce_;
  std::vector<float> rows_;  // of all members, in the own part
  std::vector<double> products_;
  CollectiveResult result_;
  size_t under_way_ = 0;
  absl::Status status_;
};

}  // namespace

void StartAdasum(absl::Time now, Communicator& group, uint32_t bucket,
                 std::vector<PartRange> tensors, Collective reduce, Outbox& outbox) {
  std::make_shared<AdasumReduce>(group, bucket, std::move(tensors), std::move(reduce))
      ->Start(now, outbox);
}

}  // namespace covey::worker
