// Answers requests that name tensors, for service.cc and stream_service.cc.

#ifndef PENSTOCK_TENSOR_SERVICE_EXCHANGE_NAMED_ANSWER_H_
#define PENSTOCK_TENSOR_SERVICE_EXCHANGE_NAMED_ANSWER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/calls.h"
#include "tensor_service/codec.h"
#include "tensor_service/codec/names.h"
#include "tensor_service/store.h"

namespace penstock::tensor {

// Parses a request with names into `proto`, and returns the names. First
// reserves room for the answer, and adds the reservation to `rooms`, which the
// caller keeps until the call has ended. Returns INVALID_ARGUMENT if the bytes
// are not such a request, and the errors of TensorStore::ReserveAnswer().
template <typename Proto>
absl::StatusOr<std::vector<std::string>> ReadNames(
    TensorStore* store, const std::string& client,
    const grpc::ByteBuffer& request, Proto* proto,
    std::vector<TensorStore::AnswerRoom>* rooms) {
  absl::StatusOr<NamesSize> size = CountNames(request);
  if (!size.ok()) return size.status();
  // Reserves room for four copies of the names: in `proto`, the result, a
  // bundle and the answer.
  absl::StatusOr<TensorStore::AnswerRoom> room =
      store->ReserveAnswer(client, size->names, 4 * size->bytes);
  if (!room.ok()) return room.status();
  rooms->push_back(*std::move(room));
  absl::Status status = ToProto(request, proto);
  if (!status.ok()) return status;
  return std::vector<std::string>(proto->names().begin(), proto->names().end());
}

// Returns how many bytes of the tensors' elements Encode() copies.
size_t CopiedBytes(const Bundle& bundle);

// Returns the tensors that a request names, lent by the store, and reserves
// room for the rest of the answer. Returns the errors of ReadNames() and
// TensorStore::Lend().
template <typename Proto>
absl::StatusOr<Bundle> LendNamed(TensorStore* store, const std::string& client,
                                 const grpc::ByteBuffer& request, Proto* proto,
                                 std::vector<TensorStore::AnswerRoom>* rooms) {
  absl::StatusOr<std::vector<std::string>> names =
      ReadNames(store, client, request, proto, rooms);
  if (!names.ok()) return names.status();
  absl::StatusOr<Bundle> bundle = store->Lend(*names);
  if (!bundle.ok()) return bundle.status();
  absl::StatusOr<TensorStore::AnswerRoom> room =
      store->ReserveAnswer(client, 0, CopiedBytes(*bundle));
  if (!room.ok()) return room.status();
  rooms->push_back(*std::move(room));
  return bundle;
}

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_EXCHANGE_NAMED_ANSWER_H_
