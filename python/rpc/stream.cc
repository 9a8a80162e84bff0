#include "python/rpc/stream.h"

#include <algorithm>
#include <utility>

#include "python/gil.h"
#include "python/rpc/closed.h"
#include "python/rpc/payloads.h"
#include "python/rpc/waits.h"
#include "transport/base/steady_time.h"

namespace penstock::python {
namespace {

namespace py = pybind11;

// Requests as many messages from the peer as the program may soon read.
template <typename Stream>
void RequestReads(Stream* stream, const std::shared_ptr<StreamState>& state) {
  for (int left = state->TakeWantedReads(); left > 0; --left) {
    stream->Read([state](absl::optional<memory::Payload> message) {
      state->OnMessage(std::move(message));
    });
  }
}

template <typename Stream>
py::object ReadFrom(Stream* stream, const std::shared_ptr<StreamState>& state,
                    bool as_view) {
  absl::optional<memory::Payload> message;
  Waited waited;
  {
    Unlocked unlocked;
    RequestReads(stream, state);
    waited =
        WaitFor([&](absl::Time until) { return state->AwaitMessage(until); },
                absl::InfiniteFuture());
    // Leaves the message for the next read if a signal handler has interrupted
    // the wait.
    if (waited == Waited::kSet) message = state->TakeMessage();
    RequestReads(stream, state);
  }
  if (waited == Waited::kInterrupted) ThrowIfRaised();
  return message.has_value() ? ToObject(*message, as_view)
                             : py::object(py::none());
}

// Returns the next message, or None after the last one. Returns Ellipsis if
// neither has come yet.
template <typename Stream>
py::object TryReadFrom(Stream* stream,
                       const std::shared_ptr<StreamState>& state,
                       bool as_view) {
  absl::optional<memory::Payload> message;
  bool is_ready = false;
  {
    Unlocked unlocked;
    RequestReads(stream, state);
    is_ready = state->HasMessage();
    if (is_ready) {
      message = state->TakeMessage();
      RequestReads(stream, state);
    }
  }
  if (message.has_value()) return ToObject(*message, as_view);
  return is_ready ? py::object(py::none()) : py::object(py::ellipsis());
}

// Calls `send` if there is room for a message of `size` bytes. Returns true if
// so, false if the stream has ended, and Ellipsis if there is no room.
template <typename Send>
py::object TryWriteTo(const std::shared_ptr<StreamState>& state, size_t bytes,
                      const Send& send) {
  bool has_room = false;
  bool is_good = false;
  {
    Unlocked unlocked;
    has_room = state->HasRoom();
    is_good = has_room && state->BeginWrite(bytes);
    if (is_good) send();
  }
  return has_room ? py::object(py::bool_(is_good)) : py::object(py::ellipsis());
}

// Waits for room for a message of `size` bytes. Returns false if the stream has
// ended.
bool AwaitRoom(const std::shared_ptr<StreamState>& state, size_t bytes) {
  const Waited waited =
      WaitFor([&](absl::Time until) { return state->AwaitRoom(until); },
              absl::InfiniteFuture());
  return waited == Waited::kSet && state->BeginWrite(bytes);
}

rpc::Accepted AcceptedOf(const std::shared_ptr<StreamState>& state) {
  return [state](bool is_accepted) { state->OnAccepted(is_accepted); };
}

// Returns true if an end that rpc::Client reports leaves the earlier messages
// readable: the peer has ended the stream normally, or a message is too large.
bool KeepsUnread(const absl::Status& status) {
  return status.ok() || absl::IsResourceExhausted(status);
}

// Ends a received stream at its deadline.
void Expire(rpc::IncomingStream* stream, StreamState* state) {
  const rpc::End end{absl::DeadlineExceededError("Deadline Exceeded"), ""};
  // First, so that no read seems to be behind the last message.
  state->End(end, /*keeps_unread=*/false);
  stream->Finish(end);
}

}  // namespace

std::shared_ptr<SentStream> SentStream::Open(
    rpc::Client* client, const rpc::Request& request,
    std::shared_ptr<const std::atomic<bool>> closed, bool has_unary_response) {
  std::shared_ptr<SentStream> made(new SentStream(has_unary_response));
  const absl::Duration limit = request.timeout;
  made->stream_ = client->Open(
      request,
      [state = made->state_](std::string metadata) {
        state->OnMetadata(std::move(metadata));
      },
      [state = made->state_, closed = std::move(closed)](rpc::End end) {
        end.status = EndOf(std::move(end.status), closed->load());
        const bool keeps_unread = KeepsUnread(end.status);
        state->End(std::move(end), keeps_unread);
      });
  RequestReads(made->stream_.get(), made->state_);
  if (limit != absl::InfiniteDuration()) {
    made->state_->ExpireAfter(limit, [weak = made->weak_from_this()] {
      if (const auto self = weak.lock()) {
        self->EndWith(absl::DeadlineExceededError("Deadline Exceeded"));
      }
    });
  }
  return made;
}

bool SentStream::Write(const py::bytes& message, bool is_last) {
  bool is_good = false;
  {
    Unlocked unlocked;
    const absl::string_view view = ViewOf(message);
    is_good = AwaitRoom(state_, view.size());
    if (is_good) Send(view, is_last);
  }
  ThrowIfRaised();
  return is_good;
}

void SentStream::Send(absl::string_view message, bool is_last) {
  absl::StatusOr<memory::Payload> payload = ToPayload(message);
  if (payload.ok()) {
    stream_->Write(*std::move(payload), AcceptedOf(state_), is_last);
  } else {
    EndWith(payload.status());
  }
}

py::object SentStream::TryWrite(const py::bytes& message, bool is_last) {
  const absl::string_view view = ViewOf(message);
  return TryWriteTo(state_, view.size(), [&] { Send(view, is_last); });
}

void SentStream::HalfClose() {
  Unlocked unlocked;
  stream_->HalfClose();
}

py::object SentStream::Read(bool as_view) {
  return ReadFrom(stream_.get(), state_, as_view);
}

py::object SentStream::TryRead() {
  return TryReadFrom(stream_.get(), state_, /*as_view=*/false);
}

py::object SentStream::TryMetadata() {
  if (!state_->has_metadata()) return py::ellipsis();
  const absl::optional<std::string> metadata = state_->metadata();
  return metadata.has_value() ? py::object(py::bytes(*metadata))
                              : py::object(py::none());
}

py::object SentStream::Metadata() {
  Waited waited;
  {
    Unlocked unlocked;
    waited =
        WaitFor([&](absl::Time until) { return state_->AwaitMetadata(until); },
                absl::InfiniteFuture());
  }
  if (waited == Waited::kInterrupted) ThrowIfRaised();
  return TryMetadata();
}

bool SentStream::Wait(double seconds) {
  Waited waited;
  {
    Unlocked unlocked;
    waited = WaitFor([&](absl::Time until) { return state_->AwaitEnd(until); },
                     base::SteadyNow() + TimeoutOf(seconds));
  }
  if (waited == Waited::kInterrupted) ThrowIfRaised();
  return is_done();
}

bool SentStream::EndWith(const absl::Status& why) {
  if (!state_->End(rpc::End{why, ""}, /*keeps_unread=*/false)) return false;
  stream_->Cancel();
  return true;
}

bool SentStream::End(int code, const std::string& message) {
  Unlocked unlocked;
  return EndWith(absl::Status(static_cast<absl::StatusCode>(code), message));
}

py::tuple SentStream::Outcome() const {
  const rpc::End end = state_->end();
  const absl::string_view message = end.status.message();
  return py::make_tuple(static_cast<int>(end.status.code()),
                        py::bytes(message.data(), message.size()),
                        py::bytes(end.metadata));
}

ReceivedStream::ReceivedStream(std::shared_ptr<rpc::IncomingStream> stream,
                               Deadlines* deadlines)
    : stream_(std::move(stream)),
      deadline_(deadlines->Add(
          base::SteadyNow() + stream_->request().timeout,
          [weak = std::weak_ptr<rpc::IncomingStream>(stream_), state = state_] {
            if (const auto stream = weak.lock())
              Expire(stream.get(), state.get());
          })) {
  Unlocked unlocked;
  stream_->OnCancel([state = state_] {
    state->End(rpc::End{absl::CancelledError(), ""}, /*keeps_unread=*/false);
  });
}

py::object ReceivedStream::TimeRemaining() const {
  if (deadline_.when() == absl::InfiniteFuture()) return py::none();
  return py::float_(absl::ToDoubleSeconds(
      std::max(deadline_.when() - base::SteadyNow(), absl::ZeroDuration())));
}

bool ReceivedStream::Write(const py::bytes& message) {
  bool is_good = false;
  {
    Unlocked unlocked;
    const absl::string_view view = ViewOf(message);
    is_good = AwaitRoom(state_, view.size());
    if (is_good) Send(view);
  }
  ThrowIfRaised();
  return is_good;
}

void ReceivedStream::Send(absl::string_view message) {
  const absl::StatusOr<memory::Payload> payload = ToPayload(message);
  if (payload.ok()) {
    stream_->Write(*payload, AcceptedOf(state_));
  } else {
    stream_->Finish(rpc::End{payload.status(), ""});
  }
}

py::object ReceivedStream::TryWrite(const py::bytes& message) {
  const absl::string_view view = ViewOf(message);
  return TryWriteTo(state_, view.size(), [&] { Send(view); });
}

py::object ReceivedStream::Read(bool as_view) {
  return ReadFrom(stream_.get(), state_, as_view);
}

py::object ReceivedStream::TryRead(bool as_view) {
  return TryReadFrom(stream_.get(), state_, as_view);
}

void ReceivedStream::SendMetadata(const py::bytes& metadata) {
  Unlocked unlocked;
  stream_->SendMetadata(ViewOf(metadata));
}

void ReceivedStream::Finish(const py::bytes& metadata) {
  Unlocked unlocked;
  deadline_.Drop();
  stream_->Finish(rpc::End{absl::OkStatus(), std::string(ViewOf(metadata))});
}

void BindStreams(py::module_& module) {
  py::class_<SentStream, std::shared_ptr<SentStream>>(module, "SentStream")
      .def("write", &SentStream::Write)
      .def("half_close", &SentStream::HalfClose)
      .def("read", &SentStream::Read, py::arg("as_view") = false)
      .def("metadata", &SentStream::Metadata)
      .def("try_write", &SentStream::TryWrite)
      .def("try_read", &SentStream::TryRead)
      .def("try_metadata", &SentStream::TryMetadata)
      .def("report_change", &SentStream::ReportChange)
      .def("is_done", &SentStream::is_done)
      .def("wait", &SentStream::Wait)
      .def("end", &SentStream::End)
      .def("report", &SentStream::Report)
      .def("report_decline", &SentStream::ReportDecline)
      .def("outcome", &SentStream::Outcome);
  py::class_<ReceivedStream, std::shared_ptr<ReceivedStream>>(module,
                                                              "ReceivedStream")
      .def_property_readonly("method", &ReceivedStream::method)
      .def_property_readonly("peer", &ReceivedStream::peer)
      .def_property_readonly("metadata", &ReceivedStream::metadata)
      .def("time_remaining", &ReceivedStream::TimeRemaining)
      .def("write", &ReceivedStream::Write)
      .def("read", &ReceivedStream::Read, py::arg("as_view") = false)
      .def("try_write", &ReceivedStream::TryWrite)
      .def("try_read", &ReceivedStream::TryRead, py::arg("as_view") = false)
      .def("report_change", &ReceivedStream::ReportChange)
      .def("send_metadata", &ReceivedStream::SendMetadata)
      .def("finish", &ReceivedStream::Finish)
      .def("is_cancelled", &ReceivedStream::is_cancelled)
      .def("watch", &ReceivedStream::Watch);
}

}  // namespace penstock::python
