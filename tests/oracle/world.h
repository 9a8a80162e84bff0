// A server and its channels in this process, over one route. They run a
// program.

#ifndef PENSTOCK_TESTS_ORACLE_WORLD_H_
#define PENSTOCK_TESTS_ORACLE_WORLD_H_

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/server.h"
#include "tests/oracle/crew.h"
#include "tests/oracle/meeting.h"
#include "tests/oracle/outcome.h"
#include "tests/oracle/program.h"
#include "tests/oracle/route.h"
#include "tests/oracle/server_call.h"
#include "tests/oracle/tag.h"

namespace penstock::oracle {

// The result of a program.
struct Result {
  std::vector<Outcome> outcomes;  // of its calls
  // Problems apart from the calls' outcomes: failures of bystanders' calls,
  // which must all succeed.
  std::vector<std::string> complaints;
  std::vector<std::string> paths;  // the paths of its connections
};

class World {
 public:
  // Makes a server and its channels. `route` and `program` must outlive the
  // world.
  World(const Route& route, const Program& program);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // Runs the program, and blocks until everything has ended. Call it once.
  Result Run();

 private:
  // One call of the program, and its state.
  struct Case {
    std::mutex mu;
    Meeting meeting;
    Outcome outcome;
  };

  void StartServer();
  std::shared_ptr<grpc::Channel> NewChannel() const;
  // Returns a channel, or null at the end.
  std::shared_ptr<grpc::Channel> ChannelAt(size_t index);
  void DropChannels();

  void Serve(ServerCall* call);
  void Echo(ServerCall* call);
  void MakeCall(const Plan& plan);
  void MakeCalls(bool rough);
  // Makes a call outside the program. Returns its status.
  grpc::Status MakeEcho(const std::shared_ptr<grpc::Channel>& channel,
                        const Message& message);
  void Settle(size_t channel);
  void RunBystander(size_t channel);
  void Befall();
  // Returns true if BreakSharedMemory() acts like a side that closes its paths.
  bool HasMoved();
  void Complain(std::string what);
  size_t LargestForAll() const;

  const Route& route_;
  const Program& program_;
  Crew crew_;  // for the server's calls
  const Handler handler_ = [this](ServerCall* call) { Serve(call); };
  std::vector<std::unique_ptr<ApiService>> services_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  ClientPump pump_;
  std::deque<Case> cases_;
  std::atomic<size_t> next_{0};
  std::atomic<bool> over_{false};

  std::mutex mu_;
  std::array<std::shared_ptr<grpc::Channel>, kChannels + 1> channels_;
  std::vector<std::string> complaints_;
};

}  // namespace penstock::oracle

#endif  // PENSTOCK_TESTS_ORACLE_WORLD_H_
