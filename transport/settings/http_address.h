// The address of an HTTP port, as written in a setting.

#ifndef PENSTOCK_TRANSPORT_SETTINGS_HTTP_ADDRESS_H_
#define PENSTOCK_TRANSPORT_SETTINGS_HTTP_ADDRESS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock {

struct HttpAddress {
  // The host: an IPv4 address, an IPv6 address in brackets, or a name.
  std::string host = "127.0.0.1";
  int port = 0;  // 0: any free port

  // Parses "9464", "0.0.0.0:9464" or "[::1]:9464". Returns nothing for another
  // form.
  static absl::optional<HttpAddress> Parse(absl::string_view text);
  std::string ToString() const;
};

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SETTINGS_HTTP_ADDRESS_H_
