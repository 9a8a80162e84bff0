#include "ps/pem.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock::ps {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using Text = std::unique_ptr<BIO, Free>;
using Certificate = std::unique_ptr<X509, Free>;
using Key = std::unique_ptr<EVP_PKEY, Free>;

Text TextOf(const PemFile& file) {
  return Text(
      BIO_new_mem_buf(file.text.data(), static_cast<int>(file.text.size())));
}

absl::Status Wrong(const PemFile& file, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(file.path, ": ", what));
}

// Returns the error for an unreadable certificate. Clears this thread's queue
// of OpenSSL errors, whose first error is the cause.
absl::Status UnreadableCertificate(const PemFile& file) {
  const unsigned long error = ERR_peek_error();
  ERR_clear_error();
  if (ERR_GET_REASON(error) == PEM_R_NO_START_LINE) {
    return Wrong(file, "there is no certificate in PEM in it");
  }
  const char* const reason = ERR_reason_error_string(error);
  return Wrong(file, absl::StrCat("its certificate cannot be read: ",
                                  reason == nullptr ? "damaged" : reason));
}

// Returns the first certificate of the file. Returns an error if any
// certificate is unreadable.
absl::StatusOr<Certificate> ReadCertificates(const PemFile& file) {
  ERR_clear_error();
  const Text text = TextOf(file);
  Certificate first(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr));
  if (first == nullptr) return UnreadableCertificate(file);
  while (
      Certificate(PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr))) {
  }
  // The loop has read all certificates if it ended because OpenSSL found no
  // further begin line.
  if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) {
    return UnreadableCertificate(file);
  }
  ERR_clear_error();
  return first;
}

// Sets `asked`, and returns no passphrase. Without this callback, OpenSSL would
// ask for a passphrase at the terminal.
int NoPassphrase(char*, int, int, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

absl::StatusOr<Key> ReadKey(const PemFile& file) {
  ERR_clear_error();
  bool asked = false;
  Key key(PEM_read_bio_PrivateKey(TextOf(file).get(), nullptr, NoPassphrase,
                                  &asked));
  if (key != nullptr) return key;
  ERR_clear_error();  // the decoder of each kind of key has left an error
  if (asked) {
    return Wrong(file, "its private key has a passphrase: take that off");
  }
  return Wrong(file, absl::StrContains(file.text, "PRIVATE KEY-----")
                         ? "its private key cannot be read: damaged or cut off"
                         : "there is no private key in PEM in it");
}

absl::Status CheckTime(const PemFile& file, const X509& certificate) {
  // Use <, because X509_cmp_current_time() returns 0 for an unreadable time.
  if (X509_cmp_current_time(X509_get0_notAfter(&certificate)) < 0) {
    return Wrong(file, "the certificate has expired");
  }
  if (X509_cmp_current_time(X509_get0_notBefore(&certificate)) > 0) {
    return Wrong(file, "the certificate is not valid yet: is the clock right?");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckAuthorities(const PemFile& ca) {
  return ReadCertificates(ca).status();
}

absl::Status CheckPem(const PemFile& ca, const PemFile& cert,
                      const PemFile& key) {
  absl::Status status = CheckAuthorities(ca);
  return status.ok() ? CheckPair(cert, key) : status;
}

absl::Status CheckPair(const PemFile& cert, const PemFile& key) {
  const absl::StatusOr<Certificate> own = ReadCertificates(cert);
  if (!own.ok()) return own.status();
  const absl::StatusOr<Key> private_key = ReadKey(key);
  if (!private_key.ok()) return private_key.status();
  const bool fits = X509_check_private_key(own->get(), private_key->get()) == 1;
  ERR_clear_error();
  if (fits) return CheckTime(cert, **own);
  return Wrong(
      key, absl::StrCat("it is not the key of the certificate in ", cert.path));
}

}  // namespace penstock::ps
