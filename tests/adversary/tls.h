// TLS over a peer's socket, compatible with gRPC, by OpenSSL. The tests attack
// only the bytes after the handshake.

#ifndef PENSTOCK_TESTS_ADVERSARY_TLS_H_
#define PENSTOCK_TESTS_ADVERSARY_TLS_H_

#include <openssl/ssl.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>

#include "absl/strings/string_view.h"
#include "tests/adversary/security.h"

namespace penstock::adversary {

// A TLS connection. Does not own the socket, which is non-blocking, and never
// waits for it. Not thread-safe.
class Tls {
 public:
  // Makes the client's or the server's side of a connection. Returns null if
  // the identity is not valid.
  static std::unique_ptr<Tls> Create(bool is_client, int socket,
                                     const Identity& identity);

  enum class Progress { kDone, kFailed, kWantsToRead, kWantsToWrite };
  // Continues the handshake. Call it again when the socket is ready for the
  // wanted direction.
  Progress Handshake();

  // Sends like send(), and receives like recv(). Returns -1 with EAGAIN if the
  // call would block.
  ssize_t Send(absl::string_view bytes);
  ssize_t Receive(char* into, size_t size);
  // Tells the other side that no more data follows (close_notify).
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
