// TLS over a peer's socket, as gRPC speaks it, by OpenSSL. Not itself under
// test: that is what comes after the handshake.

#ifndef PENSTOCK_TESTS_ADVERSARY_TLS_H_
#define PENSTOCK_TESTS_ADVERSARY_TLS_H_

#include <openssl/ssl.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "absl/strings/string_view.h"
#include "tests/adversary/security.h"

namespace penstock::adversary {

// Does not own the socket, which is non-blocking, and never waits for it. Not
// thread-safe.
class Tls {
 public:
  // Returns null if the identity is not valid.
  static std::unique_ptr<Tls> Create(bool is_client, int socket,
                                     const Identity& identity);

  enum class Progress { kDone, kFailed, kWantsToRead, kWantsToWrite };
  // Call it again when the socket can do what it wants.
  Progress Handshake();

  // Like send() and recv(): return -1, with EAGAIN in errno, if they would
  // wait.
  ssize_t Send(absl::string_view bytes);
  ssize_t Receive(char* into, size_t size);
  // Says that nothing more will come.
  void Finish();

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* connection) const { SSL_free(connection); }
  };

  Tls() = default;
  ssize_t Result(int result);

  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> connection_;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_TLS_H_
