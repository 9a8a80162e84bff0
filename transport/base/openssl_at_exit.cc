#include "transport/base/openssl_at_exit.h"

#include <openssl/crypto.h>

namespace penstock {
namespace base {

void KeepOpenSslAtExit() {
  OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
}

}  // namespace base
}  // namespace penstock
