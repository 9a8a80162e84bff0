#include "bench/rpc/setup/identity.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace penstock {
namespace bench {
namespace {

constexpr long kHour = 3600;

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(X509_NAME* name) const { X509_NAME_free(name); }
  void operator()(BIO* bio) const { BIO_free(bio); }
};

absl::Status Failed(absl::string_view what) {
  return absl::InternalError(absl::StrCat("OpenSSL: cannot ", what));
}

// Names the owner of `key` in `certificate`, and signs with the same key.
bool FillAndSign(EVP_PKEY* key, X509* certificate) {
  const std::unique_ptr<X509_NAME, Free> name(X509_NAME_new());
  return name != nullptr &&
         X509_set_version(certificate, X509_VERSION_3) == 1 &&
         ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1) == 1 &&
         X509_gmtime_adj(X509_getm_notBefore(certificate), -kHour) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(certificate), 24 * kHour) !=
             nullptr &&
         X509_NAME_add_entry_by_NID(
             name.get(), NID_commonName, MBSTRING_ASC,
             reinterpret_cast<const unsigned char*>(kIdentityName), -1, -1,
             0) == 1 &&
         X509_set_subject_name(certificate, name.get()) == 1 &&
         X509_set_issuer_name(certificate, name.get()) == 1 &&
         X509_set_pubkey(certificate, key) == 1 &&
         X509_sign(certificate, key, EVP_sha256()) > 0;
}

}  // namespace

absl::StatusOr<std::string> MakeIdentity() {
  const std::unique_ptr<EVP_PKEY, Free> key(EVP_EC_gen("P-256"));
  const std::unique_ptr<X509, Free> certificate(X509_new());
  if (key == nullptr || certificate == nullptr) return Failed("make a key");
  if (!FillAndSign(key.get(), certificate.get())) return Failed("sign");
  const std::unique_ptr<BIO, Free> pem(BIO_new(BIO_s_mem()));
  if (pem == nullptr ||
      PEM_write_bio_PKCS8PrivateKey(pem.get(), key.get(), nullptr, nullptr, 0,
                                    nullptr, nullptr) != 1 ||
      PEM_write_bio_X509(pem.get(), certificate.get()) != 1) {
    return Failed("write PEM");
  }
  char* text = nullptr;
  const long bytes = BIO_get_mem_data(pem.get(), &text);
  return std::string(text, static_cast<size_t>(bytes));
}

}  // namespace bench
}  // namespace penstock
