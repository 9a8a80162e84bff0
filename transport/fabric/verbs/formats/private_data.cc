#include "transport/fabric/verbs/formats/private_data.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "transport/wire/reader.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr uint32_t kMagic = 0x42525650;  // "PVRB"
// The lower bound of a side's receives. With fewer receives, packets that only
// grant credits could answer one another forever.
constexpr uint16_t kMinReceives = 4;
constexpr uint16_t kMinReads = 1;

std::string Hmac(absl::string_view token, absl::string_view text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  HMAC(EVP_sha256(), token.data(), static_cast<int>(token.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest,
       &size);
  return std::string(reinterpret_cast<const char*>(digest), size);
}

std::string RequestProof(absl::string_view head, absl::string_view token,
                         uint32_t client_qp) {
  std::string text = absl::StrCat("penstock verbs request", head);
  wire::AppendNumber<uint32_t>(client_qp, &text);
  return Hmac(token, text);
}

std::string AnswerProof(absl::string_view head, absl::string_view token,
                        uint32_t client_qp, uint32_t server_qp) {
  std::string text = absl::StrCat("penstock verbs answer", head);
  wire::AppendNumber<uint32_t>(client_qp, &text);
  wire::AppendNumber<uint32_t>(server_qp, &text);
  return Hmac(token, text);
}

std::string Head(const Terms& terms) {
  std::string head;
  wire::AppendNumber<uint32_t>(kMagic, &head);
  wire::AppendNumber<uint16_t>(kVersion, &head);
  wire::AppendNumber<uint16_t>(terms.receives, &head);
  wire::AppendNumber<uint16_t>(terms.reads, &head);
  wire::AppendNumber<uint16_t>(0, &head);
  return head;
}

wire::Reader ReaderOf(absl::string_view bytes) {
  return wire::Reader(
      {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

absl::StatusOr<Terms> ReadHead(wire::Reader* reader) {
  const uint32_t magic = reader->Number<uint32_t>();
  const uint16_t version = reader->Number<uint16_t>();
  Terms terms;
  terms.receives = reader->Number<uint16_t>();
  terms.reads = reader->Number<uint16_t>();
  const uint16_t zero = reader->Number<uint16_t>();
  if (!reader->ok() || magic != kMagic) {
    return absl::InvalidArgumentError("the caller does not speak Penstock");
  }
  if (version != kVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat("the peer's verbs fabric has version ", version,
                     ", this one ", kVersion));
  }
  if (zero != 0 || terms.receives < kMinReceives || terms.reads < kMinReads) {
    return absl::InvalidArgumentError("malformed terms of a verbs connection");
  }
  return terms;
}

// Returns true if `proof` follows the first `head` bytes. The time does not
// depend on the proof.
bool EndsWith(absl::string_view bytes, size_t head, absl::string_view proof) {
  return bytes.size() >= head + kProofBytes && proof.size() == kProofBytes &&
         CRYPTO_memcmp(bytes.data() + head, proof.data(), kProofBytes) == 0;
}

constexpr size_t kRequestHead = kRequestBytes - kProofBytes;
constexpr size_t kAnswerHead = kAnswerBytes - kProofBytes;

}  // namespace

absl::Status CheckToken(absl::string_view token) {
  if (!token.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError("an empty token");
}

std::string NameOfToken(absl::string_view token) {
  return Hmac(token, "penstock verbs name").substr(0, kTokenNameBytes);
}

std::string MakeRequest(const Terms& terms, absl::string_view token,
                        uint32_t client_qp) {
  std::string bytes = Head(terms) + NameOfToken(token);
  return bytes + RequestProof(bytes, token, client_qp);
}

std::string MakeAnswer(const Terms& terms, absl::string_view token,
                       uint32_t client_qp, uint32_t server_qp) {
  std::string bytes = Head(terms);
  return bytes + AnswerProof(bytes, token, client_qp, server_qp);
}

absl::StatusOr<Request> ParseRequest(absl::string_view bytes) {
  wire::Reader reader = ReaderOf(bytes);
  absl::StatusOr<Terms> terms = ReadHead(&reader);
  if (!terms.ok()) return terms.status();
  Request request;
  request.terms = *terms;
  request.token_name = reader.String(kTokenNameBytes);
  reader.String(kProofBytes);
  if (!reader.ok()) {
    return absl::InvalidArgumentError("a short request for a connection");
  }
  return request;
}

absl::StatusOr<Terms> ParseAnswer(absl::string_view bytes) {
  wire::Reader reader = ReaderOf(bytes);
  absl::StatusOr<Terms> terms = ReadHead(&reader);
  if (!terms.ok()) return terms.status();
  reader.String(kProofBytes);
  if (!reader.ok()) {
    return absl::InvalidArgumentError("a short answer to a request");
  }
  return terms;
}

bool RequestIsProven(absl::string_view bytes, absl::string_view token,
                     uint32_t client_qp) {
  const absl::string_view head = bytes.substr(0, kRequestHead);
  return EndsWith(bytes, kRequestHead, RequestProof(head, token, client_qp));
}

bool AnswerIsProven(absl::string_view bytes, absl::string_view token,
                    uint32_t client_qp, uint32_t server_qp) {
  const absl::string_view head = bytes.substr(0, kAnswerHead);
  return EndsWith(bytes, kAnswerHead,
                  AnswerProof(head, token, client_qp, server_qp));
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
