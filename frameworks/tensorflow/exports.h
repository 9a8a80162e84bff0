// What the Python package calls, by ctypes.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_EXPORTS_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_EXPORTS_H_

extern "C" {

// Returns what describe() of the Python package shows, as JSON, in memory that
// penstock_tensorflow_free() takes back. Thread-safe.
char* penstock_tensorflow_describe();
void penstock_tensorflow_free(char* text);

// Returns the release of TensorFlow that the library was built for.
const char* penstock_tensorflow_built_for();

}  // extern "C"

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_EXPORTS_H_
