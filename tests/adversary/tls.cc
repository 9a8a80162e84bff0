#include "tests/adversary/tls.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <string>

namespace penstock::adversary {
namespace {

// The only ALPN protocol that gRPC offers and accepts.
const unsigned char kHttp2[] = {2, 'h', '2'};

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

std::unique_ptr<BIO, Free> Text(const std::string& pem) {
  return std::unique_ptr<BIO, Free>(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

std::unique_ptr<X509, Free> Certificate(const std::string& pem) {
  return std::unique_ptr<X509, Free>(
      PEM_read_bio_X509(Text(pem).get(), nullptr, nullptr, nullptr));
}

bool Use(const Identity& identity, SSL_CTX* context) {
  const auto authority = Certificate(identity.authority);
  const auto certificate = Certificate(identity.certificate);
  const std::unique_ptr<EVP_PKEY, Free> key(PEM_read_bio_PrivateKey(
      Text(identity.key).get(), nullptr, nullptr, nullptr));
  return authority != nullptr && certificate != nullptr && key != nullptr &&
         X509_STORE_add_cert(SSL_CTX_get_cert_store(context),
                             authority.get()) == 1 &&
         SSL_CTX_use_certificate(context, certificate.get()) == 1 &&
         SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

int ChooseHttp2(SSL*, const unsigned char** chosen, unsigned char* size,
                const unsigned char*, unsigned int, void*) {
  *chosen = kHttp2 + 1;
  *size = kHttp2[0];
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

std::unique_ptr<Tls> Tls::Create(bool is_client, int socket,
                                 const Identity& identity) {
  // Ignores SIGPIPE. OpenSSL writes without MSG_NOSIGNAL, and the victim may
  // have hung up.
  signal(SIGPIPE, SIG_IGN);
  std::unique_ptr<Tls> tls(new Tls());
  tls->context_.reset(SSL_CTX_new(TLS_method()));
  SSL_CTX* const context = tls->context_.get();
  if (!Use(identity, context)) return nullptr;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                     nullptr);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_alpn_protos(context, kHttp2, sizeof kHttp2);
  SSL_CTX_set_alpn_select_cb(context, ChooseHttp2, nullptr);
  tls->connection_.reset(SSL_new(context));
  SSL_set_fd(tls->connection_.get(), socket);
  if (is_client) {
    SSL_set_connect_state(tls->connection_.get());
  } else {
    SSL_set_accept_state(tls->connection_.get());
  }
  return tls;
}

Tls::Progress Tls::Handshake() {
  ERR_clear_error();
  const int result = SSL_do_handshake(connection_.get());
  if (result == 1) return Progress::kDone;
  switch (SSL_get_error(connection_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return Progress::kWantsToRead;
    case SSL_ERROR_WANT_WRITE:
      return Progress::kWantsToWrite;
    default:
      return Progress::kFailed;
  }
}

ssize_t Tls::Send(absl::string_view bytes) {
  ERR_clear_error();
  const size_t size = std::min<size_t>(bytes.size(), INT_MAX);
  return Result(
      SSL_write(connection_.get(), bytes.data(), static_cast<int>(size)));
}

ssize_t Tls::Receive(char* into, size_t size) {
  ERR_clear_error();
  return Result(SSL_read(connection_.get(), into, static_cast<int>(size)));
}

void Tls::Finish() {
  ERR_clear_error();
  SSL_shutdown(connection_.get());
}

ssize_t Tls::Result(int result) {
  if (result > 0) return result;
  switch (SSL_get_error(connection_.get(), result)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      errno = EAGAIN;
      return -1;
    case SSL_ERROR_ZERO_RETURN:
      return 0;
    default:
      errno = ECONNRESET;
      return -1;
  }
}

}  // namespace penstock::adversary
