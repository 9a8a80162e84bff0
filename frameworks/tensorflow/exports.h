// C functions for the Python package, which calls them by ctypes.

#ifndef PENSTOCK_FRAMEWORKS_TENSORFLOW_EXPORTS_H_
#define PENSTOCK_FRAMEWORKS_TENSORFLOW_EXPORTS_H_

extern "C" {

// Returns the result of the Python package's describe(), as JSON. The caller
// frees it by penstock_tensorflow_free(). Thread-safe.
char* penstock_tensorflow_describe();
void penstock_tensorflow_free(char* text);

// Returns the release of TensorFlow that the library was built for.
const char* penstock_tensorflow_built_for();

}  // extern "C"

#endif  // PENSTOCK_FRAMEWORKS_TENSORFLOW_EXPORTS_H_
