/* l4/amd64/arch.h - the name by which some programs include l4/arch.h. */
#include <l4/arch.h>
