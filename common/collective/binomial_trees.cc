// SPDX-License-Identifier: Apache-2.0
#include "common/collective/binomial_trees.h"

#include <bit>

namespace covey {

TreeLinks BinomialLinks(uint32_t owner, uint32_t rank, uint32_t size) {
  const uint32_t place = (rank + size - owner) % size;
  TreeLinks links;
  if (place != 0) links.parent = (owner + (place & (place - 1))) % size;
  for (uint32_t step = 1; step < size && (place & step) == 0; step *= 2) {
    if (place + step < size) links.children.push_back((owner + place + step) % size);
  }
  return links;
}

TreeLinks HalvingDoublingLinks(uint32_t owner, uint32_t rank, uint32_t size) {
  TreeLinks links;
  const uint32_t core = std::bit_floor(size);
  const bool owner_is_extra = owner >= core;
  if (rank >= core) {
    if (rank == owner) {
      links.children.push_back(rank - core);
    } else {
      links.parent = rank - core;
    }
    return links;
  }
  if (rank + core < size && rank + core != owner) links.children.push_back(rank + core);
  const uint32_t core_owner = owner_is_extra ? owner - core : owner;
  const uint32_t place = rank ^ core_owner;
  if (place != 0) {
    links.parent = rank ^ std::bit_floor(place);
  } else if (owner_is_extra) {
    links.parent = owner;
  }
  for (uint32_t step = core / 2; step > 0 && step > place; step /= 2) {
    links.children.push_back(rank ^ step);
  }
  return links;
}

}  // namespace covey
