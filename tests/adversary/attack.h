// A table of attacks, each of which is a test.

#ifndef PENSTOCK_TESTS_ADVERSARY_ATTACK_H_
#define PENSTOCK_TESTS_ADVERSARY_ATTACK_H_

#include <ostream>
#include <string>

#include "gtest/gtest.h"
#include "tests/adversary/victim.h"

namespace penstock::adversary {

struct Attack {
  const char* name;
  void (*run)(Victim* victim);
  Limits limits = {};
  VictimOptions victim = {};
};

// Returns the same attack by a peer that first sets up valid TLS, and is
// hostile only in the encrypted bytes.
inline Attack UnderTls(Attack attack) {
  attack.victim.has_tls = true;
  return attack;
}

inline std::ostream& operator<<(std::ostream& out, const Attack& attack) {
  return out << attack.name;
}

inline std::string NameOfTest(const ::testing::TestParamInfo<Attack>& info) {
  return info.param.name;
}

// Runs each attack against a separate victim.
class AttackTest : public ::testing::TestWithParam<Attack> {
 protected:
  virtual VictimOptions options() const { return GetParam().victim; }
  void Run() {
    Victim victim(options());
    if (HasFailure()) return;
    GetParam().run(&victim);
    victim.Examine(GetParam().limits);
  }
};

// The test fixtures of the files with attacks.
class AgainstServer : public AttackTest {};
class AgainstClient : public AttackTest {
 protected:
  VictimOptions options() const override {
    VictimOptions options = GetParam().victim;
    options.role = Role::kClient;
    return options;
  }
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_ATTACK_H_
