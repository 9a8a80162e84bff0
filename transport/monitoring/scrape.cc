#include "transport/monitoring/scrape.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace penstock {
namespace monitoring {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(5);
constexpr absl::string_view kText = "text/plain; charset=utf-8";
// The content type, with the version of Prometheus' format.
constexpr absl::string_view kMetrics =
    "text/plain; version=0.0.4; charset=utf-8";

bool MayComeLater(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

Scrape::Scrape(progress::EventLoop* loop, base::UniqueFd socket,
               Callbacks callbacks)
    : loop_(loop),
      socket_(std::move(socket)),
      callbacks_(std::move(callbacks)) {}

Scrape::~Scrape() {
  if (socket_.valid()) shutdown(socket_.get(), SHUT_RDWR);
}

void Scrape::Start() {
  SetLimit();
  OnReadable();
  if (state_ == State::kReading) Watch(EPOLLIN, &Scrape::OnReadable);
}

void Scrape::Watch(uint32_t events, void (Scrape::*ready)()) {
  loop_->Unwatch(std::exchange(watch_, 0));
  std::shared_ptr<Scrape> self = shared_from_this();
  const absl::StatusOr<progress::EventLoop::Id> watch = loop_->Watch(
      socket_.get(), events, [self, ready](uint32_t) { ((*self).*ready)(); });
  if (!watch.ok()) return Finish();
  watch_ = *watch;
}

void Scrape::SetLimit() {
  loop_->Cancel(limit_);
  std::shared_ptr<Scrape> self = shared_from_this();
  limit_ = loop_->RunAfter(kLimit, [self] { self->Finish(); });
}

void Scrape::ReadOrEnd() {
  OnReadable();
  if (state_ == State::kReading) Finish();
}

void Scrape::OnReadable() {
  if (state_ != State::kReading) return;
  char bytes[4096];
  const ssize_t got = recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0 && MayComeLater(errno)) return;
  if (got <= 0) return Finish();
  received_.append(bytes, static_cast<size_t>(got));
  const absl::StatusOr<absl::optional<HttpRequest>> request =
      ParseHttpRequest(received_);
  if (!request.ok()) return Refuse("400 Bad Request");
  if (request->has_value()) OnHead(**request);
}

// Handles the head of a request. Ignores bytes after the head: each connection
// has one answer.
void Scrape::OnHead(const HttpRequest& request) {
  is_head_only_ = request.method == "HEAD";
  if (request.path != "/metrics") return Refuse("404 Not Found");
  if (request.method != "GET" && !is_head_only_) {
    return Refuse("405 Method Not Allowed");
  }
  state_ = State::kWaiting;
  loop_->Unwatch(std::exchange(watch_, 0));
  SetLimit();
  callbacks_.asked();
}

void Scrape::Refuse(absl::string_view status) {
  Write(status, kText,
        std::make_shared<const std::string>(absl::StrCat(status, "\n")));
}

bool Scrape::Answer(std::shared_ptr<const std::string> text) {
  if (state_ == State::kWaiting) Write("200 OK", kMetrics, std::move(text));
  return state_ == State::kWriting;
}

void Scrape::Write(absl::string_view status, absl::string_view content_type,
                   std::shared_ptr<const std::string> body) {
  state_ = State::kWriting;
  loop_->Unwatch(std::exchange(watch_, 0));
  head_ = EncodeHttpAnswer(status, content_type, body->size());
  if (!is_head_only_) body_ = std::move(body);
  OnWritable();
}

absl::string_view Scrape::Rest() const {
  if (sent_ < head_.size()) return absl::string_view(head_).substr(sent_);
  if (body_ == nullptr) return "";
  return absl::string_view(*body_).substr(sent_ - head_.size());
}

void Scrape::OnWritable() {
  if (state_ != State::kWriting) return;
  for (absl::string_view rest = Rest(); !rest.empty(); rest = Rest()) {
    const ssize_t sent = send(socket_.get(), rest.data(), rest.size(),
                              MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && MayComeLater(errno)) {
      if (watch_ == 0) Watch(EPOLLOUT, &Scrape::OnWritable);
      return;
    }
    if (sent < 0) break;
    sent_ += static_cast<size_t>(sent);
  }
  TakeTheRest();
  Finish();
}

// Reads the rest of the request: closing a socket with unread bytes would
// discard the answer.
void Scrape::TakeTheRest() {
  char bytes[4096];
  for (int i = 0; i < 16; ++i) {
    if (recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT) <= 0) return;
  }
}

void Scrape::Finish() {
  if (state_ == State::kOver) return;
  const std::function<void()> ended = callbacks_.ended;
  End();
  ended();
}

void Scrape::End() {
  state_ = State::kOver;
  callbacks_ = Callbacks();
  loop_->Cancel(std::exchange(limit_, 0));
  loop_->Unwatch(std::exchange(watch_, 0));
  if (socket_.valid()) shutdown(socket_.get(), SHUT_RDWR);
  socket_.Reset();
  received_.clear();
  body_ = nullptr;
}

}  // namespace monitoring
}  // namespace penstock
