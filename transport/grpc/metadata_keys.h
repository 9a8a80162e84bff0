// The numbers of keys, and of key-value pairs, in encoded metadata.

#ifndef PENSTOCK_TRANSPORT_GRPC_METADATA_KEYS_H_
#define PENSTOCK_TRANSPORT_GRPC_METADATA_KEYS_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "src/core/lib/transport/metadata_batch.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// The first byte of an entry is one of:
//  - kLiteral;
//  - kFirstKey + n for a known key;
//  - kFirstPair + n for a known key-value pair;
//  - the entry's number on this connection (metadata_table.h).
constexpr uint8_t kLiteral = 0;
constexpr uint8_t kFirstKey = 1;
constexpr uint8_t kFirstPair = 128;

template <typename... Types>
struct List {
  static constexpr size_t kSize = sizeof...(Types);
};

// The keys that have numbers. Part of the protocol: a key's position in the
// list is its number. Append new keys at the end, and raise the version of the
// protocol.
using Keys =
    List<grpc_core::HttpPathMetadata, grpc_core::HttpAuthorityMetadata,
         grpc_core::HttpMethodMetadata, grpc_core::HttpStatusMetadata,
         grpc_core::HttpSchemeMetadata, grpc_core::ContentTypeMetadata,
         grpc_core::TeMetadata, grpc_core::GrpcEncodingMetadata,
         grpc_core::GrpcAcceptEncodingMetadata, grpc_core::GrpcStatusMetadata,
         grpc_core::GrpcTimeoutMetadata,
         grpc_core::GrpcPreviousRpcAttemptsMetadata,
         grpc_core::GrpcRetryPushbackMsMetadata, grpc_core::UserAgentMetadata,
         grpc_core::GrpcMessageMetadata, grpc_core::HostMetadata,
         grpc_core::EndpointLoadMetricsBinMetadata,
         grpc_core::GrpcServerStatsBinMetadata, grpc_core::GrpcTraceBinMetadata,
         grpc_core::GrpcTagsBinMetadata>;

template <typename TraitType, typename TraitType::ValueType kTheValue>
struct Pair {
  using Trait = TraitType;
  static constexpr typename TraitType::ValueType kValue = kTheValue;
};

// The pairs that have numbers. Part of the protocol, like Keys: a pair's
// position in the list is its number.
using Pairs = List<
    Pair<grpc_core::HttpMethodMetadata, grpc_core::HttpMethodMetadata::kPost>,
    Pair<grpc_core::HttpSchemeMetadata, grpc_core::HttpSchemeMetadata::kHttp>,
    Pair<grpc_core::HttpSchemeMetadata, grpc_core::HttpSchemeMetadata::kHttps>,
    Pair<grpc_core::ContentTypeMetadata,
         grpc_core::ContentTypeMetadata::kApplicationGrpc>,
    Pair<grpc_core::TeMetadata, grpc_core::TeMetadata::kTrailers>,
    Pair<grpc_core::GrpcStatusMetadata, GRPC_STATUS_OK>,
    Pair<grpc_core::GrpcEncodingMetadata, GRPC_COMPRESS_NONE>>;

// Returns the number of the trait's key, or kLiteral if the key has no number.
template <typename Trait, typename... Traits>
constexpr uint8_t NumberOfKey(List<Traits...>) {
  uint8_t number = kFirstKey;
  bool found = false;
  (void)std::initializer_list<int>{
      (found = found || std::is_same<Trait, Traits>::value,
       number += found ? 0 : 1, 0)...};
  return found ? number : kLiteral;
}

template <typename Pair, typename Trait, typename Value>
typename std::enable_if<std::is_same<typename Pair::Trait, Trait>::value,
                        bool>::type
IsPair(Trait, const Value& value) {
  return value == Pair::kValue;
}
template <typename Pair, typename Trait, typename Value>
typename std::enable_if<!std::is_same<typename Pair::Trait, Trait>::value,
                        bool>::type
IsPair(Trait, const Value&) {
  return false;
}

// Returns the number of the pair, or 0 if the pair has no number.
template <typename Trait, typename Value, typename... All>
uint8_t NumberOfPair(Trait trait, const Value& value, List<All...>) {
  uint8_t number = kFirstPair;
  bool found = false;
  (void)std::initializer_list<int>{(found = found || IsPair<All>(trait, value),
                                    number += found ? 0 : 1, 0)...};
  return found ? number : 0;
}

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_METADATA_KEYS_H_
