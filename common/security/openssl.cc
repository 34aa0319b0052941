// SPDX-License-Identifier: Apache-2.0
#include "common/security/openssl.h"

#include <openssl/err.h>

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace covey {
namespace {

absl::string_view ContentOf(BIO& writer) {
  char* begin = nullptr;
  const long bytes = BIO_get_mem_data(&writer, &begin);
  return {begin, bytes > 0 ? static_cast<size_t>(bytes) : 0};
}

}  // namespace

BioPointer ReaderOf(absl::string_view text) {
  if (text.size() > std::numeric_limits<int>::max()) return nullptr;
  return BioPointer(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

int RefusePassphrase(char*, int, int, void*) { return -1; }

BioPointer MakeWriter() { return BioPointer(BIO_new(BIO_s_mem())); }

std::string TextIn(BIO& writer) { return std::string(ContentOf(writer)); }

Secret SecretIn(BIO& writer) {
  const absl::string_view content = ContentOf(writer);
  Secret secret(content.size());
  std::copy(content.begin(), content.end(), secret.bytes().begin());
  return secret;
}

absl::Status OpenSslFailure(absl::string_view doing) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return absl::InternalError(
      absl::StrCat(doing, ": ", reason != nullptr ? reason : "OpenSSL gives no reason"));
}

}  // namespace covey
