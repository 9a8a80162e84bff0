#include "transport/device/allocation_name.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "transport/base/byte_order.h"
#include "transport/base/token.h"

namespace penstock {
namespace device {
namespace {

constexpr uint8_t kVersion = 1;
constexpr size_t kMarkBytes = 16;
constexpr size_t kMarkedBytes = AllocationNames::kBytes - kMarkBytes;

}  // namespace

constexpr size_t AllocationNames::kBytes;
constexpr uint64_t AllocationNames::kMaxSize;

absl::StatusOr<AllocationNames> AllocationNames::Create() {
  absl::StatusOr<std::string> key = base::NewToken();
  if (!key.ok()) return key.status();
  return AllocationNames(*std::move(key));
}

std::string AllocationNames::MarkOf(absl::string_view bytes) const {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  HMAC(EVP_sha256(), key_.data(), static_cast<int>(key_.size()),
       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
       digest, &size);
  return std::string(reinterpret_cast<const char*>(digest), kMarkBytes);
}

std::string AllocationNames::Encode(const AllocationName& name) const {
  std::string bytes(kMarkedBytes, '\0');
  auto* const out = reinterpret_cast<uint8_t*>(&bytes[0]);
  out[0] = kVersion;
  std::memcpy(out + 1, name.device.bytes, sizeof name.device.bytes);
  base::StoreLittle<uint64_t>(name.size, out + 17);
  base::StoreLittle<uint64_t>(name.address, out + 25);
  base::StoreLittle<uint64_t>(name.id, out + 33);
  std::memcpy(out + 41, name.ipc.bytes, sizeof name.ipc.bytes);
  return bytes + MarkOf(bytes);
}

absl::StatusOr<AllocationNames::Decoded> AllocationNames::Decode(
    absl::string_view bytes) const {
  const auto* const in = reinterpret_cast<const uint8_t*>(bytes.data());
  if (!bytes.empty() && in[0] != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the name of an allocation has version ", in[0], ", not ", kVersion,
        ": use one version of Penstock in both processes"));
  }
  if (bytes.size() != kBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name of an allocation has ", bytes.size(),
                     " bytes, not ", kBytes));
  }
  Decoded decoded;
  AllocationName& name = decoded.name;
  std::memcpy(name.device.bytes, in + 1, sizeof name.device.bytes);
  name.size = base::LoadLittle<uint64_t>(in + 17);
  name.address = base::LoadLittle<uint64_t>(in + 25);
  if (name.size == 0 || name.size > kMaxSize ||
      name.address > UINT64_MAX - name.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the name of an allocation has ", name.size,
                     " bytes at address ", name.address));
  }
  name.id = base::LoadLittle<uint64_t>(in + 33);
  std::memcpy(name.ipc.bytes, in + 41, sizeof name.ipc.bytes);
  const std::string mark = MarkOf(bytes.substr(0, kMarkedBytes));
  decoded.is_own =
      CRYPTO_memcmp(mark.data(), in + kMarkedBytes, kMarkBytes) == 0;
  return decoded;
}

}  // namespace device
}  // namespace penstock
