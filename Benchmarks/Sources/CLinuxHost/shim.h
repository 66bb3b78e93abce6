#include <malloc.h>
#include <sys/statfs.h>

// What a run loop needs to run the main queue itself: exported by libdispatch for CoreFoundation.
int _dispatch_get_main_queue_handle_4CF(void);
void _dispatch_main_queue_callback_4CF(void *message);
