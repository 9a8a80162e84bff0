// A program with the text by which penstock-run recognises a gRPC that is
// linked into a program.

static const char* volatile text = "src/core/lib/surface/call.cc";

int main(void) { return text == 0; }
