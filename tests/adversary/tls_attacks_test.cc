// Tests attacks on TLS records, by a peer with a valid certificate that is
// hostile after the handshake. Attacks inside the records are rows UnderTls()
// of the other files.

#include <string>

#include "tests/adversary/attack.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

// Returns the header of an application data record of this size. All records
// claim TLS 1.2.
std::string RecordHeader(uint16_t size) {
  return std::string("\x17\x03\x03", 3) + static_cast<char>(size >> 8) +
         static_cast<char>(size & 0xff);
}

void WriteRawAndAwaitEnd(Victim* victim, const std::string& bytes) {
  std::unique_ptr<Peer> peer = victim->NewSession();
  peer->WriteRaw(bytes);
  EXPECT_TRUE(peer->AwaitEnd()) << "the session does not end";
}

// Writes bytes that are not TLS records.
void WriteNoRecords(Victim* victim) {
  WriteRawAndAwaitEnd(victim, std::string(100, 'x'));
  WriteRawAndAwaitEnd(victim, std::string(100, '\0'));
  WriteRawAndAwaitEnd(victim, RecordHeader(100) + std::string(100, 'x'));
  WriteRawAndAwaitEnd(victim, RecordHeader(UINT16_MAX));
  WriteRawAndAwaitEnd(victim,
                      Unit(unit::kPacket, 0, Encode(FrameOf(type::kPing, 0))));
}

// Truncates a record at each byte, during a session.
void TearARecord(Victim* victim) {
  const std::string record = RecordHeader(200) + std::string(200, 'x');
  for (size_t size = 0; size < record.size(); size += 20) {
    std::unique_ptr<Peer> peer = victim->NewSession();
    peer->OpenStream(RequestMetadata("/victim/Echo"));
    peer->WriteRaw(record.substr(0, size));
    peer->Abort();
  }
}

// Writes unprotected alerts, handshakes and cipher changes.
void WriteOtherRecords(Victim* victim) {
  for (char type : {'\x14', '\x15', '\x16', '\x18', '\xff'}) {
    std::string record = RecordHeader(2) + std::string("\x02\x28", 2);
    record[0] = type;
    WriteRawAndAwaitEnd(victim, record);
  }
}

// Sends the first bytes of a client that uses no TLS.
void SpeakInTheClear(Victim* victim) {
  for (const std::string& bytes :
       {ClientPreface(), ServerSettings(), std::string(1 << 20, 'x')}) {
    std::unique_ptr<Peer> peer = victim->NewConnectionInClear();
    peer->WriteRaw(bytes);
    EXPECT_TRUE(peer->Finish());
  }
}

const Attack kAttacks[] = {
    UnderTls({"BytesThatAreNoRecordEndTheSession", WriteNoRecords}),
    UnderTls({"ATornRecordIsHarmless", TearARecord}),
    UnderTls({"RecordsOfAnotherTypeEndTheSession", WriteOtherRecords}),
    UnderTls({"WhatIsInTheClearIsHarmless", SpeakInTheClear}),
};

TEST_P(AgainstServer, NobodyIsHarmed) { Run(); }
TEST_P(AgainstClient, NobodyIsHarmed) { Run(); }

INSTANTIATE_TEST_SUITE_P(Tls, AgainstServer, ::testing::ValuesIn(kAttacks),
                         NameOfTest);
INSTANTIATE_TEST_SUITE_P(Tls, AgainstClient, ::testing::ValuesIn(kAttacks),
                         NameOfTest);

}  // namespace
}  // namespace penstock::adversary
