/* l4/pagefault.h - the name by which some programs include l4/protocols.h. */
#include <l4/protocols.h>
