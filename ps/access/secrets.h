// The secret that stands for a certificate where there is no TLS.

#ifndef PENSTOCK_PS_ACCESS_SECRETS_H_
#define PENSTOCK_PS_ACCESS_SECRETS_H_

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::ps {

// As many characters as 128 random bits have in hex.
constexpr size_t kMinSecretBytes = 32;
constexpr size_t kMaxSecretBytes = 512;

// Parses a file of secrets: one on a line; blank lines and lines that begin
// with '#' are skipped. Clients send the first. Servers take the first two, so
// that a secret can be changed without a gap:
//
//   1. servers read "old, new",  2. clients read "new",  3. servers read "new".
//
// Returns INVALID_ARGUMENT, which names `path` and the line but never the
// secret, unless there are one or two that differ, each of kMinSecretBytes to
// kMaxSecretBytes of the characters of a bearer token (RFC 6750), such as
// `openssl rand -base64 32` prints.
absl::StatusOr<std::vector<std::string>> ParseSecrets(absl::string_view text,
                                                      const std::string& path);

// Reads such a file, which must be readable by its owner only, as
// ReadTrustedFile() says.
absl::StatusOr<std::vector<std::string>> ReadSecrets(const std::string& path);

// The secrets that a server takes. Keeps only their SHA-256. Immutable.
class SecretDigests {
 public:
  SecretDigests() = default;
  explicit SecretDigests(const std::vector<std::string>& secrets);

  bool empty() const { return digests_.empty(); }
  // Returns whether `presented` is one of them. How long it takes depends on
  // nothing but `presented` itself and how many there are: digests are of one
  // length and are all compared whole.
  bool Contains(absl::string_view presented) const;

 private:
  std::vector<std::array<unsigned char, 32>> digests_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_SECRETS_H_
