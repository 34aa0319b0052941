// SPDX-License-Identifier: Apache-2.0
#include "common/security/secret.h"

#include <openssl/crypto.h>

#include "common/base/check.h"

namespace covey {

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this == &other) return *this;
  Clear();
  bytes_ = std::move(other.bytes_);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

void Secret::Truncate(size_t size) {
  COVEY_CHECK(size <= size_);
  // Which the compiler may not leave out, as it may a memset before the end of a lifetime.
  if (bytes_ != nullptr) OPENSSL_cleanse(bytes_.get() + size, size_ - size);
  size_ = size;
}

}  // namespace covey
