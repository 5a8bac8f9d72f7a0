/* l4/amd64/kdebug.h - the name by which some programs include l4/kdebug.h. */
#include <l4/kdebug.h>
