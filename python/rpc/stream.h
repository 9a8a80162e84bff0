// Streams of transport/rpc for Python.

#ifndef PENSTOCK_PYTHON_RPC_STREAM_H_
#define PENSTOCK_PYTHON_RPC_STREAM_H_

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "python/rpc/deadlines.h"
#include "python/rpc/stream_state.h"
#include "transport/rpc/client.h"
#include "transport/rpc/server.h"

namespace penstock::python {

// Call all functions of both classes with the GIL. Functions that wait, copy or
// send release the GIL. One thread may read while another one writes. After
// Ctrl-C, waits of the main thread throw KeyboardInterrupt.

// A stream of a client. The destructor cancels the stream.
class SentStream : public std::enable_shared_from_this<SentStream> {
 public:
  // Opens a stream, which ends at its timeout. `closed` becomes true when the
  // program closes the client. With `has_unary_response`, the stream can end
  // before the program has read its single response.
  static std::shared_ptr<SentStream> Open(
      rpc::Client* client, const rpc::Request& request,
      std::shared_ptr<const std::atomic<bool>> closed, bool has_unary_response);

  // Sends a message. Waits while too many messages wait for the peer. If
  // `is_last`, half-closes the stream after the message. Returns false if the
  // stream has ended.
  bool Write(const pybind11::bytes& message, bool is_last);
  void HalfClose();
  // Returns the next message, or None after the last one. With `as_view`, may
  // return a memoryview; see ToObject().
  pybind11::object Read(bool as_view);
  // Functions for event loops, which do not wait. They return the results of
  // Write(), Read() and Metadata(), or Ellipsis if those functions would wait.
  pybind11::object TryWrite(const pybind11::bytes& message, bool is_last);
  pybind11::object TryRead();
  pybind11::object TryMetadata();
  // Adds `number` to Reports when such a function may succeed; see
  // StreamState::ReportChange().
  void ReportChange(uint64_t number) { state_->ReportChange(number); }
  // Waits for the server's metadata and returns it. Returns None if the stream
  // ends without metadata.
  pybind11::object Metadata();
  bool is_done() const { return state_->has_ended(); }
  // Waits up to `seconds`; negative means no limit. Returns is_done().
  bool Wait(double seconds);
  // Ends the stream with a status code and a text. Returns false if the stream
  // has ended before.
  bool End(int code, const std::string& message);
  void Report(uint64_t number) { state_->Report(number); }
  void ReportDecline(uint64_t number) { state_->ReportDecline(number); }
  // Returns (code, message, metadata at the end). Call after the end.
  pybind11::tuple Outcome() const;

 private:
  explicit SentStream(bool has_unary_response)
      : state_(std::make_shared<StreamState>(!has_unary_response)) {}

  bool EndWith(const absl::Status& why);
  void Send(absl::string_view message, bool is_last);

  const std::shared_ptr<StreamState> state_;
  std::unique_ptr<rpc::OutgoingStream> stream_;
};

// A stream that a server has received. At its deadline, the client gets
// DEADLINE_EXCEEDED, and the stream is cancelled for its handler.
class ReceivedStream {
 public:
  ReceivedStream(std::shared_ptr<rpc::IncomingStream> stream,
                 Deadlines* deadlines);

  const std::string& method() const { return stream_->request().method; }
  const std::string& peer() const { return stream_->peer(); }
  pybind11::bytes metadata() const { return stream_->request().metadata; }
  pybind11::object TimeRemaining() const;

  bool Write(const pybind11::bytes& message);
  pybind11::object Read(bool as_view);
  // Functions for event loops, like those of SentStream.
  pybind11::object TryWrite(const pybind11::bytes& message);
  pybind11::object TryRead(bool as_view);
  void ReportChange(uint64_t number) { state_->ReportChange(number); }
  void SendMetadata(const pybind11::bytes& metadata);
  // Ends the stream, and sends the metadata with the end.
  void Finish(const pybind11::bytes& metadata);
  // Returns true if the client has cancelled the stream or has gone, or if the
  // deadline has passed.
  bool is_cancelled() const { return state_->has_ended(); }
  // Adds `number` to Reports when is_cancelled() becomes true.
  void Watch(uint64_t number) { state_->Report(number); }

 private:
  void Send(absl::string_view message);

  const std::shared_ptr<rpc::IncomingStream> stream_;
  const std::shared_ptr<StreamState> state_ =
      std::make_shared<StreamState>(/*holds_end=*/false);
  const Deadlines::Entry deadline_;
};

void BindStreams(pybind11::module_& module);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_RPC_STREAM_H_
