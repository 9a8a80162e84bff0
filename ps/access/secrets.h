// The secrets by which clients without TLS prove that they have permission.

#ifndef PENSTOCK_PS_ACCESS_SECRETS_H_
#define PENSTOCK_PS_ACCESS_SECRETS_H_

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::ps {

// The minimal length of a secret in characters: 128 random bits in hex.
constexpr size_t kMinSecretBytes = 32;
constexpr size_t kMaxSecretBytes = 512;

// Parses a secrets file with one secret per line. Blank lines and lines that
// begin with '#' are skipped. Clients send the first secret. Servers accept the
// first two, which allows changing a secret without an outage:
//
//   1. servers read "old, new",  2. clients read "new",  3. servers read "new".
//
// Returns INVALID_ARGUMENT unless there are one or two different secrets. A
// secret has kMinSecretBytes to kMaxSecretBytes characters of a bearer token
// (RFC 6750), such as the output of `openssl rand -base64 32`. The message has
// `path` and the line, but never the secret.
absl::StatusOr<std::vector<std::string>> ParseSecrets(absl::string_view text,
                                                      const std::string& path);

// Reads a secrets file, which only its owner may read; see ReadTrustedFile().
absl::StatusOr<std::vector<std::string>> ReadSecrets(const std::string& path);

// The secrets that a server accepts. Stores only their SHA-256 digests.
// Immutable.
class SecretDigests {
 public:
  SecretDigests() = default;
  explicit SecretDigests(const std::vector<std::string>& secrets);

  bool empty() const { return digests_.empty(); }
  // Returns true if `presented` is one of the secrets. The time depends only on
  // `presented` and the number of secrets: all digests are compared in full.
  bool Contains(absl::string_view presented) const;

 private:
  std::vector<std::array<unsigned char, 32>> digests_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_SECRETS_H_
