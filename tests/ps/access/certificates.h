// Makes certificates with arbitrary names, even names that no tool allows.

#ifndef PENSTOCK_TESTS_PS_ACCESS_CERTIFICATES_H_
#define PENSTOCK_TESTS_PS_ACCESS_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

namespace penstock::ps {

// The names of a certificate. May contain any bytes.
struct CertificateNames {
  std::string common_name;  // empty: none
  std::vector<std::string> uris;
  std::vector<std::string> dns;
  std::vector<std::string> ips;  // 4 bytes each
};

// A certificate and its key, in PEM.
struct Bearer {
  std::string certificate;
  std::string key;
};

// Signs certificates. Aborts if OpenSSL fails, which happens only without
// memory.
class Authority {
 public:
  explicit Authority(const std::string& name = "authority");

  // Returns the certificate of this authority, in PEM.
  const std::string& certificate() const { return certificate_; }
  // Returns a key, and a certificate that this authority has signed and that is
  // valid for some seconds.
  Bearer Issue(const CertificateNames& names, long seconds = 24L * 3600) const;

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using Key = std::unique_ptr<EVP_PKEY, Free>;
  using Certificate = std::unique_ptr<X509, Free>;

  static Certificate NewCertificate(EVP_PKEY* key, const std::string& name);

  const Key key_;
  Certificate self_;
  std::string certificate_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_ACCESS_CERTIFICATES_H_
