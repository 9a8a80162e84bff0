// One connection to the port of the metrics.

#ifndef PENSTOCK_TRANSPORT_MONITORING_SCRAPE_H_
#define PENSTOCK_TRANSPORT_MONITORING_SCRAPE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "transport/base/unique_fd.h"
#include "transport/monitoring/http_request.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace monitoring {

//   state     event                     action               next
//   kReading  head of /metrics          ask for the text     kWaiting
//   kReading  other or malformed head   answer with an error kWriting
//   kWaiting  text                      write it             kWriting
//   kWriting  all is written            end                  kOver
//   any       error, time limit, End()  close                kOver
//
// A client has five seconds in total to send the request's head, and then five
// seconds in total to read the answer. Receiving a byte does not extend the
// time. Used on the loop's thread.
class Scrape : public std::enable_shared_from_this<Scrape> {
 public:
  struct Callbacks {
    std::function<void()> asked;  // called once, for /metrics
    std::function<void()> ended;  // called once, unless End() is called
  };

  Scrape(progress::EventLoop* loop, base::UniqueFd socket, Callbacks callbacks);
  // Shuts the socket down, because a forked child may hold a copy that would
  // keep the connection open.
  ~Scrape();

  // Reads the received bytes, and then waits for more.
  void Start();
  // Reads once more. Ends the connection if the request's head is still
  // incomplete.
  void ReadOrEnd();
  // Answers with the metrics. Returns true if the client is still reading them.
  // Does nothing if the client no longer waits.
  bool Answer(std::shared_ptr<const std::string> text);
  // Closes the connection without reporting its end.
  void End();

 private:
  enum class State { kReading, kWaiting, kWriting, kOver };

  void Watch(uint32_t events, void (Scrape::*ready)());
  void SetLimit();
  void OnReadable();
  void OnHead(const HttpRequest& request);
  void Refuse(absl::string_view status);
  void Write(absl::string_view status, absl::string_view content_type,
             std::shared_ptr<const std::string> body);
  void OnWritable();
  // Returns the bytes to send next; empty at the end of the answer.
  absl::string_view Rest() const;
  void TakeTheRest();
  void Finish();

  progress::EventLoop* const loop_;
  base::UniqueFd socket_;
  Callbacks callbacks_;
  State state_ = State::kReading;
  progress::EventLoop::Id watch_ = 0;
  progress::EventLoop::Id limit_ = 0;
  std::string received_;
  bool is_head_only_ = false;                // HEAD requests get no body
  std::string head_;                         // of the answer
  std::shared_ptr<const std::string> body_;  // shared by all clients of one
                                             // collection
  size_t sent_ = 0;                          // of both
};

}  // namespace monitoring
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MONITORING_SCRAPE_H_
