// The set-up of a simulation, with limits that short messages reach.

#include <cstdint>
#include <memory>
#include <utility>

#include "tests/transport/session/simulation.h"

namespace penstock {
namespace session {

void Simulation::MakeOwner(Side side) {
  Owner& made = owner(side);
  made.side = side;
  made.session = std::make_unique<Session>(RandomConfig(side),
                                           lifeline_.Take(side), &made, &made);
  made.session->Start();
}

LinkOptions Simulation::RandomLink(bool is_lifeline) {
  LinkOptions options;
  options.is_lifeline = is_lifeline;
  options.max_packet_bytes = Pick<size_t>({16 * 1024, 64 * 1024});
  options.eager_max_bytes = Pick<size_t>({0, 64, 1024, 20000});
  options.read_chunk_bytes = Pick<size_t>({100, 4096, 1 << 20});
  options.max_reads = Pick({1, 2, 4});
  options.can_load = !is_lifeline && Roll(2) == 0;
  options.credits = Pick({1, 2, 64});
  return options;
}

Config Simulation::RandomConfig(Side side) {
  Config config = side == Side::kA ? ClientConfig() : ServerConfig();
  config.version = version_;
  if (!options_.offers_path) config.offers.clear();
  config.stream_window = Pick<uint32_t>({1, 200, 3000, 50000, 4 << 20});
  config.read_budget = Pick<uint64_t>({1, 3000, 50000, 64 << 20});
  config.max_eager_unread = Pick<uint64_t>({0, 500, 16 << 20});
  config.load_in_place = Roll(4) != 0;
  config.defers_answers = Roll(2) == 0;
  if (Roll(8) == 0) config.max_receive_bytes = 10000;
  if (side == Side::kB && Roll(2) == 0) config.max_streams = 1 + Roll(4);
  return config;
}

size_t Simulation::RandomSize() {
  switch (Roll(8)) {
    case 0:
      return Roll(3);
    case 1:
      return 1020 + Roll(10);
    case 2:
      return Roll(20000);
    case 3:
      return Roll(30) == 0 ? 300000 : Roll(60000);
    default:
      return Roll(300);
  }
}

void Simulation::RandomPlan(CallPlan* plan) {
  plan->stream = next_stream_;
  plan->session_lost = lifeline_lost_;
  for (uint32_t i = Roll(6); i > 0; --i) {
    plan->requests.push_back(RandomSize());
  }
  for (uint32_t i = Roll(6); i > 0; --i) {
    plan->responses.push_back(RandomSize());
  }
  plan->ends_early = Roll(6) == 0;
  plan->client_cancels = Roll(6) == 0 ? 10 : 0;
  plan->server_aborts = Roll(6) == 0 ? 10 : 0;
}

}  // namespace session
}  // namespace penstock
