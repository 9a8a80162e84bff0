// Names in a peer's certificate, and patterns of such names.

#ifndef PENSTOCK_PS_ACCESS_IDENTITY_H_
#define PENSTOCK_PS_ACCESS_IDENTITY_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::ps {

enum class NameKind {
  kUri,         // a subject alternative name, such as a SPIFFE ID
  kDns,         // a subject alternative name
  kCommonName,  // the subject's
};

// One name in a certificate, exactly as the certificate's authority wrote the
// name.
struct Identity {
  NameKind kind = NameKind::kUri;
  std::string name;
};

// Returns "uri:NAME", "dns:NAME" or "cn:NAME", printable, truncated if long.
std::string ToString(const Identity& identity);

// Limits the length of a name in bytes. SPIFFE has the same limit for an ID.
constexpr size_t kMaxNameBytes = 2048;

// Returns the names of a certificate that may identify its bearer. DNS names
// are returned in lower case. These names do not count:
//
// - A name that is empty, too long, or not printable ASCII. Therefore no name
//   can be cut short by a NUL, and no two names look alike. Only common names
//   may have spaces.
// - A name with a '*': a wildcard certificate does not identify the host that
//   presents it, and a name must not be mistaken for a pattern.
// - A SPIFFE ID next to another URI: SPIFFE forbids such certificates
//   (X509-SVID, section 2).
// - The common name, if there is any URI or DNS name (RFC 6125, 6.4.4).
std::vector<Identity> NamesThatCount(const std::vector<Identity>& names);

// A pattern of certificate names. "uri:TEXT", "dns:TEXT" and "cn:TEXT" match
// only names of that kind. A '*' in the text matches one or more characters,
// but neither a '/' of a URI nor a '.' of a DNS name. "any" matches every
// certificate, even one without names.
class Pattern {
 public:
  // Parses `text`. Returns INVALID_ARGUMENT, with the reason, if `text` is not
  // a pattern or could match no name.
  static absl::StatusOr<Pattern> Parse(absl::string_view text);

  bool matches_any() const { return matches_any_; }
  // Returns true if the pattern matches `identity`, which must count. Takes
  // time proportional to the product of both lengths at worst.
  bool Matches(const Identity& identity) const;
  // Returns the pattern in the form of Parse(). Equal patterns give equal
  // texts.
  std::string ToString() const;

 private:
  Pattern() = default;

  bool matches_any_ = false;
  Identity glob_;  // the name may have '*'
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_IDENTITY_H_
