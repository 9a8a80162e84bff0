#include "ps/access/secrets.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ps/access/trusted_file.h"

namespace penstock::ps {
namespace {

constexpr size_t kMaxSecrets = 2;
constexpr size_t kMaxFileBytes = 16 << 10;
constexpr char kHowToMake[] =
    "make one by: (umask 077; openssl rand -base64 32 > FILE)";

using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;

Digest DigestOf(absl::string_view text) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
         digest.data());
  return digest;
}

bool IsTokenCharacter(unsigned char c) {
  return absl::ascii_isalnum(c) ||
         absl::string_view("-._~+/=").find(static_cast<char>(c)) !=
             absl::string_view::npos;
}

// Returns the reason why `secret` is invalid, or "" for a valid secret.
std::string Flaw(absl::string_view secret) {
  if (secret.size() < kMinSecretBytes) {
    return absl::StrCat("the secret has ", secret.size(), " characters, and ",
                        kMinSecretBytes, " are the least; ", kHowToMake);
  }
  if (secret.size() > kMaxSecretBytes) {
    return absl::StrCat("the secret has ", secret.size(), " characters, and ",
                        kMaxSecretBytes, " are the most");
  }
  if (!std::all_of(secret.begin(), secret.end(), IsTokenCharacter)) {
    return absl::StrCat("a secret is made of letters, digits and -._~+/=; ",
                        kHowToMake);
  }
  return "";
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ParseSecrets(absl::string_view text,
                                                      const std::string& path) {
  std::vector<std::string> secrets;
  size_t number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    std::string flaw = Flaw(line);
    if (flaw.empty() && secrets.size() == kMaxSecrets) {
      flaw = "a third secret: the new one and the old one are the most";
    }
    if (flaw.empty() && !secrets.empty() && secrets.front() == line) {
      flaw = "the same secret as above";
    }
    if (!flaw.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": ", flaw));
    }
    secrets.emplace_back(line);
  }
  if (secrets.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": there is no secret in it; ", kHowToMake));
  }
  return secrets;
}

absl::StatusOr<std::vector<std::string>> ReadSecrets(const std::string& path) {
  absl::StatusOr<std::string> text =
      ReadTrustedFile(path, kMaxFileBytes, Secrecy::kSecret);
  if (!text.ok()) return text.status();
  return ParseSecrets(*text, path);
}

SecretDigests::SecretDigests(const std::vector<std::string>& secrets) {
  digests_.reserve(secrets.size());
  for (const std::string& secret : secrets) {
    digests_.push_back(DigestOf(secret));
  }
}

bool SecretDigests::Contains(absl::string_view presented) const {
  if (presented.size() > kMaxSecretBytes) return false;  // not worth a digest
  const Digest digest = DigestOf(presented);
  unsigned equal = 0;
  for (const Digest& known : digests_) {
    equal |= static_cast<unsigned>(
        CRYPTO_memcmp(known.data(), digest.data(), digest.size()) == 0);
  }
  return equal != 0;
}

}  // namespace penstock::ps
