// Certificates with any names, even such as no tool would make.

#ifndef PENSTOCK_TESTS_PS_ACCESS_CERTIFICATES_H_
#define PENSTOCK_TESTS_PS_ACCESS_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <vector>

namespace penstock::ps {

// Any bytes.
struct CertificateNames {
  std::string common_name;  // empty: none
  std::vector<std::string> uris;
  std::vector<std::string> dns;
};

// In PEM.
struct Bearer {
  std::string certificate;
  std::string key;
};

// Aborts if OpenSSL fails, as it does only without memory.
class Authority {
 public:
  explicit Authority(const std::string& name = "authority");

  // Its own certificate, in PEM.
  const std::string& certificate() const { return certificate_; }
  // Returns a certificate that it has signed, for a day, and its key.
  Bearer Issue(const CertificateNames& names) const;

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
