#include "tests/ps/access/certificates.h"

#include <openssl/asn1.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace penstock::ps {
namespace {

constexpr long kHour = 3600;

void Require(bool done, const char* what) {
  if (done) return;
  std::fprintf(stderr, "OpenSSL: cannot %s\n", what);
  std::abort();
}

template <typename Write>
std::string ToPem(Write write) {
  const std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new(BIO_s_mem()), BIO_free);
  Require(write(bio.get()) == 1, "write PEM");
  char* text = nullptr;
  const long bytes = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<size_t>(bytes)};
}

std::string ToPem(X509* certificate) {
  return ToPem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

std::string ToPem(EVP_PKEY* key) {
  return ToPem([&](BIO* bio) {
    return PEM_write_bio_PKCS8PrivateKey(bio, key, nullptr, nullptr, 0, nullptr,
                                         nullptr);
  });
}

void Add(int kind, const std::string& name, GENERAL_NAMES* names) {
  ASN1_IA5STRING* const text = ASN1_IA5STRING_new();
  Require(
      ASN1_STRING_set(text, name.data(), static_cast<int>(name.size())) == 1,
      "set a name");
  GENERAL_NAME* const general = GENERAL_NAME_new();
  GENERAL_NAME_set0_value(general, kind, text);
  Require(sk_GENERAL_NAME_push(names, general) > 0, "add a name");
}

void AddAlternatives(const CertificateNames& names, X509* certificate) {
  if (names.uris.empty() && names.dns.empty() && names.ips.empty()) return;
  const std::unique_ptr<GENERAL_NAMES, void (*)(GENERAL_NAMES*)> all(
      GENERAL_NAMES_new(), GENERAL_NAMES_free);
  for (const std::string& uri : names.uris) Add(GEN_URI, uri, all.get());
  for (const std::string& dns : names.dns) Add(GEN_DNS, dns, all.get());
  for (const std::string& ip : names.ips) Add(GEN_IPADD, ip, all.get());
  Require(X509_add1_ext_i2d(certificate, NID_subject_alt_name, all.get(), 0,
                            X509V3_ADD_DEFAULT) == 1,
          "add alternative names");
}

void MakeAuthority(X509* certificate) {
  const std::unique_ptr<BASIC_CONSTRAINTS, void (*)(BASIC_CONSTRAINTS*)> is_ca(
      BASIC_CONSTRAINTS_new(), BASIC_CONSTRAINTS_free);
  is_ca->ca = 0xff;
  Require(X509_add1_ext_i2d(certificate, NID_basic_constraints, is_ca.get(), 1,
                            X509V3_ADD_DEFAULT) == 1,
          "make an authority");
}

}  // namespace

Authority::Certificate Authority::NewCertificate(EVP_PKEY* key,
                                                 const std::string& name) {
  static std::atomic<long> serial{0};
  Certificate made(X509_new());
  X509_set_version(made.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -kHour);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), 24 * kHour);
  X509_set_pubkey(made.get(), key);
  if (name.empty()) return made;
  Require(X509_NAME_add_entry_by_NID(
              X509_get_subject_name(made.get()), NID_commonName, MBSTRING_UTF8,
              reinterpret_cast<const unsigned char*>(name.data()),
              static_cast<int>(name.size()), -1, 0) == 1,
          "set the common name");
  return made;
}

Authority::Authority(const std::string& name)
    : key_(EVP_EC_gen("P-256")), self_(NewCertificate(key_.get(), name)) {
  X509_set_issuer_name(self_.get(), X509_get_subject_name(self_.get()));
  MakeAuthority(self_.get());
  Require(X509_sign(self_.get(), key_.get(), EVP_sha256()) > 0, "sign");
  certificate_ = ToPem(self_.get());
}

Bearer Authority::Issue(const CertificateNames& names, long seconds) const {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate made = NewCertificate(key.get(), names.common_name);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), seconds);
  X509_set_issuer_name(made.get(), X509_get_subject_name(self_.get()));
  AddAlternatives(names, made.get());
  Require(X509_sign(made.get(), key_.get(), EVP_sha256()) > 0, "sign");
  return {ToPem(made.get()), ToPem(key.get())};
}

}  // namespace penstock::ps
