// Who a peer is by its certificate, and patterns of such names.

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
  kCommonName,  // of the subject
};

// One name in a certificate, as the authority has put it there.
struct Identity {
  NameKind kind = NameKind::kUri;
  std::string name;
};

// Returns "uri:NAME", "dns:NAME" or "cn:NAME", printable, and cut if long.
std::string ToString(const Identity& identity);

// The most that SPIFFE allows for an ID. Longer names do not count.
constexpr size_t kMaxNameBytes = 2048;

// Returns those of a certificate's names by which its bearer may be known. DNS
// names come in lower case. These do not count:
//
// - A name that is empty, too long, or has other characters than printable
//   ASCII. So a NUL cannot end it early, and no two names look alike. Spaces
//   are allowed in common names only.
// - A name with a '*'. A wildcard certificate says nothing about which host of
//   many bears it, and no name may pass for a pattern.
// - A SPIFFE ID beside another URI: such a certificate is none of SPIFFE's
//   (X509-SVID, section 2).
// - The common name, if there is any URI or DNS name (RFC 6125, 6.4.4).
std::vector<Identity> NamesThatCount(const std::vector<Identity>& names);

// What names match. "uri:TEXT", "dns:TEXT" and "cn:TEXT" match names of that
// kind only. A '*' in the text stands for one character or more, but never for
// a '/' of a URI nor for a '.' of a DNS name. "any" matches every certificate,
// even one without a name.
class Pattern {
 public:
  // Returns INVALID_ARGUMENT, which says what is wrong, unless `text` is such a
  // pattern and could match a name.
  static absl::StatusOr<Pattern> Parse(absl::string_view text);

  bool matches_any() const { return matches_any_; }
  // `identity` must be one that counts. Takes time in proportion to the product
  // of both lengths at worst.
  bool Matches(const Identity& identity) const;
  // Returns it in the form of Parse(): equal patterns give equal texts.
  std::string ToString() const;

 private:
  Pattern() = default;

  bool matches_any_ = false;
  Identity glob_;  // whose name may have '*'
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_IDENTITY_H_
