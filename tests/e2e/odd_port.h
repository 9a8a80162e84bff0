// A port behind which there is no gRPC server.

#ifndef PENSTOCK_TESTS_E2E_ODD_PORT_H_
#define PENSTOCK_TESTS_E2E_ODD_PORT_H_

#include <atomic>
#include <future>
#include <ostream>
#include <string>
#include <thread>

namespace penstock::e2e {

// How the port treats who connects.
enum class Manner {
  kHttp1,             // answers "HTTP/1.1 400", and hangs up
  kHttp1Stays,        // answers "HTTP/1.1 400"
  kTls,               // answers with an alert, and hangs up
  kSsh,               // says its version first
  kNothing,           // says nothing
  kHangsUp,           // hangs up at once
  kHangsUpLater,      // reads the preface, and hangs up
  kHalfSettings,      // begins a SETTINGS frame, and says no more
  kHalfThenHangsUp,   // begins a SETTINGS frame, and hangs up
  kOtherFrame,        // sends another frame of HTTP/2 first
  kAcknowledges,      // acknowledges the client's SETTINGS, has none of its own
  kSettings,          // sends SETTINGS, as a gRPC server does, and no more
  kPenstock,          // answers as a Penstock server does, and says no more
  kPenstockHangsUp,   // answers as a Penstock server does, and hangs up
  kPenstockNonsense,  // answers as a Penstock server does, then with nonsense
};

std::string NameOf(Manner manner);
std::ostream& operator<<(std::ostream& out, Manner manner);

// Listens on a free port of 127.0.0.1 from a thread of its own.
class OddPort {
 public:
  explicit OddPort(Manner manner);
  // Closes all connections.
  ~OddPort();
  OddPort(const OddPort&) = delete;
  OddPort& operator=(const OddPort&) = delete;

  std::string address() const;
  int connections() const { return connections_; }
  // Blocks until a connection has got its answer and its client hangs up. Call
  // it for manners that leave connections open. Returns false if that takes too
  // long.
  bool ClientHangsUp();

 private:
  void Serve();

  const Manner manner_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> connections_{0};
  std::promise<int> first_open_;  // the first connection that is left open
  std::thread thread_;
};

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_ODD_PORT_H_
