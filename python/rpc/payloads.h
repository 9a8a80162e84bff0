// Converts messages between Python's bytes and payloads.

#ifndef PENSTOCK_PYTHON_RPC_PAYLOADS_H_
#define PENSTOCK_PYTHON_RPC_PAYLOADS_H_

#include <pybind11/pybind11.h>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/memory/bytes.h"

namespace penstock::python {

// The smallest message, in bytes, that is written into the pool. Shared memory
// carries such a message without another copy.
constexpr size_t kLeastPoolBytes = 16 * 1024;

// Returns the object's bytes, which live as long as the object. Call it with
// the GIL.
absl::string_view ViewOf(const pybind11::bytes& bytes);

// Copies a message. Needs no GIL. Fails if there is no memory.
absl::StatusOr<memory::Payload> ToPayload(absl::string_view message);

// Copies a message of the peer. Releases the GIL while copying a long message.
// Call with the GIL.
pybind11::bytes ToBytes(const memory::Payload& payload);

// Returns the message as bytes. With `as_view`, returns a read-only memoryview
// of the payload's own memory instead, and keeps that memory while the
// memoryview lives. Copies short messages, and messages in several pieces, in
// both cases. Call with the GIL.
pybind11::object ToObject(const memory::Payload& payload, bool as_view);

void BindPayloads(pybind11::module_& module);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_PAYLOADS_H_
