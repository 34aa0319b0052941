// SPDX-License-Identifier: Apache-2.0
#include "common/collective/plan.h"

#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "common/collective/binomial_trees.h"

namespace covey {
namespace {

// More rings than this find no free links on today's machines, and make messages small.
constexpr size_t kRingsMax = 4;

// Strides whose rings visit every member, alternately forward and backward: 1, N - 1, 3, N - 3, ...
std::vector<uint32_t> RingStrides(uint32_t size) {
  std::vector<uint32_t> strides;
  for (uint32_t stride = 1; stride <= size / 2 && strides.size() < kRingsMax; ++stride) {
    if (std::gcd(stride, size) != 1) continue;
    strides.push_back(stride);
    if (size - stride != stride) strides.push_back(size - stride);
  }
  if (strides.empty()) strides.push_back(1);
  return strides;
}

}  // namespace

Plan::Plan(PlanOptions options) : algorithm_(options.algorithm), size_(options.size), strides_{1} {
  COVEY_CHECK(size_ >= 1 && algorithm_ != Algorithm::kAutomatic);
  COVEY_CHECK(options.paths.empty() || options.paths.size() == size_);
  if (algorithm_ == Algorithm::kMultiRing) strides_ = RingStrides(size_);
  if (algorithm_ == Algorithm::kHierarchical) {
    options.paths.resize(size_);
    hierarchical_trees_.emplace(options.paths);
  }
}

// The trees that add a member's own values first.
TreeLinks Plan::LinksOf(uint32_t owner, uint32_t rank) const {
  if (algorithm_ == Algorithm::kHierarchical) return hierarchical_trees_->LinksOf(owner, rank);
  if (algorithm_ == Algorithm::kTree) return BinomialLinks(owner, rank, size_);
  return HalvingDoublingLinks(owner, rank, size_);
}

ReduceNode Plan::Reduce(uint32_t owner, uint32_t stripe, uint32_t rank) const {
  COVEY_CHECK(owner < size_ && rank < size_ && stripe < stripes());
  ReduceNode node;
  switch (algorithm_) {
    case Algorithm::kDirect:
    case Algorithm::kOneShot:
      if (rank != owner) {
        node = {.operands = {rank}, .parent = owner};
      } else {
        node.operands.resize(size_);
        std::iota(node.operands.begin(), node.operands.end(), 0);
      }
      return node;
    case Algorithm::kAutomatic:
    case Algorithm::kRing:
    case Algorithm::kMultiRing: {
      const uint32_t stride = strides_[stripe];
      if (size_ > 1 && rank != (owner + stride) % size_) {
        node.operands.push_back((rank + size_ - stride) % size_);
      }
      node.operands.push_back(rank);
      if (rank != owner) node.parent = (rank + stride) % size_;
      return node;
    }
    default: {
      const TreeLinks links = LinksOf(owner, rank);
      node = {.operands = {rank}, .parent = links.parent};
      node.operands.insert(node.operands.end(), links.children.begin(), links.children.end());
      return node;
    }
  }
}

SpreadNode Plan::Spread(uint32_t owner, uint32_t stripe, uint32_t rank) const {
  COVEY_CHECK(owner < size_ && rank < size_ && stripe < stripes());
  SpreadNode node;
  switch (algorithm_) {
    case Algorithm::kDirect:
    case Algorithm::kOneShot:
      if (rank != owner) {
        node.parent = owner;
      } else {
        // Different owners begin with different members.
        for (uint32_t i = 1; i < size_; ++i) node.children.push_back((owner + i) % size_);
      }
      return node;
    case Algorithm::kAutomatic:
    case Algorithm::kRing:
    case Algorithm::kMultiRing: {
      const uint32_t stride = strides_[stripe];
      const uint32_t next = (rank + stride) % size_;
      if (next != owner) node.children.push_back(next);
      if (rank != owner) node.parent = (rank + size_ - stride) % size_;
      return node;
    }
    default: {
      // The reduction tree reversed: the child that was added last has the most members behind it.
      const TreeLinks links = LinksOf(owner, rank);
      return {.parent = links.parent,
              .children = std::vector<uint32_t>(links.children.rbegin(), links.children.rend())};
    }
  }
}

}  // namespace covey
