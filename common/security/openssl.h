// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/security/secret.h"

namespace covey {

// OpenSSL's objects with owners, for the files of this folder. Actor-confined.

template <auto kRelease>
struct OpenSslRelease {
  template <typename T>
  void operator()(T* object) const {
    kRelease(object);
  }
};

using BioPointer = std::unique_ptr<BIO, OpenSslRelease<BIO_free>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, OpenSslRelease<EVP_PKEY_free>>;
using CertificatePointer = std::unique_ptr<X509, OpenSslRelease<X509_free>>;
using ExtensionPointer = std::unique_ptr<X509_EXTENSION, OpenSslRelease<X509_EXTENSION_free>>;
using NamesPointer = std::unique_ptr<GENERAL_NAMES, OpenSslRelease<GENERAL_NAMES_free>>;

// Reads from `text`, which outlives it. Null when memory ends, or the text is beyond 2 GiB.
BioPointer ReaderOf(absl::string_view text);
// What to give OpenSSL's readers of PEM: without it they ask for the passphrase of an encrypted
// text at the terminal, and wait.
int RefusePassphrase(char*, int, int, void*);
// Takes what is written to it; overwritten when it goes. Null when memory ends.
BioPointer MakeWriter();
std::string TextIn(BIO& writer);
Secret SecretIn(BIO& writer);

// INTERNAL: "`doing`: " and the newest of OpenSSL's errors of this thread, all of which are
// forgotten.
absl::Status OpenSslFailure(absl::string_view doing);

}  // namespace covey
