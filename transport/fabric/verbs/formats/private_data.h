// The bytes that the two sides exchange through the connection manager. Each
// side proves that it knows the token. The token itself came over the session's
// lifeline, and is never sent through the connection manager. Little-endian:
//
//   request    u32 "PVRB", u16 version, u16 receives, u16 reads, u16 0,
//              8 bytes token name, 32 bytes proof
//   answer     u32 "PVRB", u16 version, u16 receives, u16 reads, u16 0,
//              32 bytes proof
//
// A name is the first bytes of HMAC-SHA256(token, "penstock verbs name"). A
// proof is HMAC-SHA256(token, label, the bytes before it, queue pair numbers).
// An overheard proof is therefore useless for another queue pair.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_FORMATS_PRIVATE_DATA_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_FORMATS_PRIVATE_DATA_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace fabric {
namespace verbs {

constexpr uint16_t kVersion = 1;
constexpr size_t kTokenNameBytes = 8;
constexpr size_t kProofBytes = 32;
constexpr size_t kRequestBytes = 12 + kTokenNameBytes + kProofBytes;
constexpr size_t kAnswerBytes = 12 + kProofBytes;
// The connection manager leaves 56 bytes for a request on RDMA_PS_TCP.
static_assert(kRequestBytes <= 56, "a request must fit");

// The capabilities of a side.
struct Terms {
  uint16_t receives = 0;  // receives posted for the peer's packets, at least 4
  uint16_t reads = 0;     // concurrent reads that it serves, at least 1
};

// Returns INVALID_ARGUMENT if the token is empty, because an empty token would
// prove nothing.
absl::Status CheckToken(absl::string_view token);
// Returns the name by which a listener finds the token.
std::string NameOfToken(absl::string_view token);

// Return the bytes of a request and of an answer, with their proofs.
std::string MakeRequest(const Terms& terms, absl::string_view token,
                        uint32_t client_qp);
std::string MakeAnswer(const Terms& terms, absl::string_view token,
                       uint32_t client_qp, uint32_t server_qp);

struct Request {
  Terms terms;
  std::string token_name;
};

// Parse the peer's bytes, which the connection manager may have padded with
// zeros. Return INVALID_ARGUMENT for other bytes, and FAILED_PRECONDITION for
// another version. Do not check the proof.
absl::StatusOr<Request> ParseRequest(absl::string_view bytes);
absl::StatusOr<Terms> ParseAnswer(absl::string_view bytes);

// Return true if `bytes` contain a valid proof, so that their sender knows
// `token`. `bytes` must have been parsed successfully. The time does not depend
// on the proof.
bool RequestIsProven(absl::string_view bytes, absl::string_view token,
                     uint32_t client_qp);
bool AnswerIsProven(absl::string_view bytes, absl::string_view token,
                    uint32_t client_qp, uint32_t server_qp);

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_FORMATS_PRIVATE_DATA_H_
