#include "transport/base/token.h"

#include <sys/random.h>

#include <cerrno>

#include "transport/base/status_util.h"

namespace penstock {
namespace base {

absl::StatusOr<std::string> NewToken() {
  std::string token(kTokenBytes, '\0');
  ssize_t got = getrandom(&token[0], token.size(), 0);
  if (got != kTokenBytes) return ErrnoStatus(errno, "getrandom");
  return token;
}

}  // namespace base
}  // namespace penstock
