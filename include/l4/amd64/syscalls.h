/*
 * l4/amd64/syscalls.h - the system calls as inline assembly.
 *
 * A call is an indirect near call through a link variable that the start-up
 * code fills from the kernel interface page.  The stub behind the link may
 * destroy every register but RSP and the segment registers.  RBP, which cannot
 * be declared as destroyed where it is the frame pointer, is saved around the
 * call; all others are operands or declared.  The stack pointer first steps over
 * 128 bytes, so that the code is right in functions with a red zone, too.
 *
 * MR1..MR7 travel in RAX, RBX, R10, R12..R15 and MR0 in R9.  They are loaded and
 * stored inside the assembly: the compiler has to place few operands only, at
 * any optimisation level.
 */
#ifndef L4_AMD64_SYSCALLS_H
#define L4_AMD64_SYSCALLS_H

#include <l4/amd64/utcb.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The link variables: addresses of the kernel's stubs, filled at start. */
extern L4_Word_t __L4_Ipc, __L4_Lipc, __L4_LocalCall, __L4_LocalReplyWait;
extern L4_Word_t __L4_Unmap, __L4_ExchangeRegisters;
extern L4_Word_t __L4_ThreadControl, __L4_SpaceControl, __L4_Schedule;
extern L4_Word_t __L4_ThreadSwitch, __L4_SystemClock;
extern L4_Word_t __L4_ProcessorControl, __L4_MemoryControl;

#ifdef __cplusplus
}
#endif

#define __L4_CALL(link)            \
    "leaq  -128(%%rsp), %%rsp\n\t" \
    "pushq %%rbp\n\t"              \
    "call  *" link "(%%rip)\n\t"   \
    "popq  %%rbp\n\t"              \
    "leaq  128(%%rsp), %%rsp\n\t"

#define __L4_LOAD_MRS              \
    "movq  0(%%rdi), %%r9\n\t"     \
    "movq  8(%%rdi), %%rax\n\t"    \
    "movq  16(%%rdi), %%rbx\n\t"   \
    "movq  24(%%rdi), %%r10\n\t"   \
    "movq  32(%%rdi), %%r12\n\t"   \
    "movq  40(%%rdi), %%r13\n\t"   \
    "movq  48(%%rdi), %%r14\n\t"   \
    "movq  56(%%rdi), %%r15\n\t"

#define __L4_STORE_MRS             \
    "movq  %%r9, 0(%%rdi)\n\t"     \
    "movq  %%rax, 8(%%rdi)\n\t"    \
    "movq  %%rbx, 16(%%rdi)\n\t"   \
    "movq  %%r10, 24(%%rdi)\n\t"   \
    "movq  %%r12, 32(%%rdi)\n\t"   \
    "movq  %%r13, 40(%%rdi)\n\t"   \
    "movq  %%r14, 48(%%rdi)\n\t"   \
    "movq  %%r15, 56(%%rdi)\n\t"

/* Destroyed by every call and never an operand. */
#define __L4_CLOBBERS "rbx", "r11", "r12", "r13", "r14", "r15", "cc", "memory"

/*
 * Nothing in the vector and x87 registers survives an Ipc: the compiler has to know,
 * and the kernel is told by bit 0 of RDI, so that it saves nothing.  The control words
 * (MXCSR, x87) do survive.  A compiler that was told to leave the registers alone
 * (-mno-sse, -mgeneral-regs-only) has nothing in them.
 */
#define __L4_DEAD_REGISTERS "orq   $1, %%rdi\n\t"
#ifdef __SSE__
#define __L4_VECTOR_CLOBBERS                                                    \
    , "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",   \
        "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "st",     \
        "st(1)", "st(2)", "st(3)", "st(4)", "st(5)", "st(6)", "st(7)"
#else
#define __L4_VECTOR_CLOBBERS
#endif
#ifdef __AVX512F__
#define __L4_MASK_CLOBBERS                                                      \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",   \
        "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31", \
        "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define __L4_MASK_CLOBBERS
#endif

/* KernelInterface: `lock nop`, an instruction that only the kernel understands. */
L4_INLINE void *L4_KernelInterface(L4_Word_t *ApiVersion, L4_Word_t *ApiFlags,
                                   L4_Word_t *KernelId)
{
    void *kip;
    L4_Word_t version, flags, id;
    __asm__ __volatile__(".byte 0xf0, 0x90"
                         : "=a"(kip), "=c"(version), "=d"(flags), "=S"(id));
    *ApiVersion = version;
    *ApiFlags = flags;
    *KernelId = id;
    return kip;
}

#define __L4_DEFINE_IPC(name, link, dead)                                          \
    L4_INLINE L4_MsgTag_t name(L4_ThreadId_t to, L4_ThreadId_t FromSpecifier,  \
                               L4_Word_t Timeouts, L4_ThreadId_t *from)        \
    {                                                                          \
        __L4_Utcb_t utcb = __L4_Utcb();                                        \
        L4_Word_t partner = to.raw, specifier = FromSpecifier.raw;             \
        L4_MsgTag_t result;                                                    \
        register L4_Word_t timeouts __asm__("r8") = Timeouts;                  \
        register L4_Word_t tag __asm__("r9");                                  \
        __asm__ __volatile__(__L4_LOAD_MRS dead                                \
                                 __L4_CALL(link) __L4_STORE_MRS                \
                             : "+S"(partner), "+d"(specifier), "+D"(utcb),     \
                               "+r"(timeouts), "=&r"(tag)                      \
                             :                                                 \
                             : "rax", "rcx", "r10", __L4_CLOBBERS              \
                                   __L4_VECTOR_CLOBBERS __L4_MASK_CLOBBERS);   \
        result.raw = tag;                                                      \
        from->raw = partner;                                                   \
        return result;                                                         \
    }

/*
 * Ipc: send MR0.. to `to` (nilthread: no send phase), then receive from
 * `FromSpecifier` (nilthread: no receive phase).  Returns the received tag; the
 * sender is stored to *from.  Timeouts: 31..16 send, 15..0 receive.
 */
__L4_DEFINE_IPC(L4_Ipc, "__L4_Ipc", __L4_DEAD_REGISTERS)

/* Lipc: as Ipc, made for partners in the same space. */
__L4_DEFINE_IPC(L4_Lipc, "__L4_Lipc", __L4_DEAD_REGISTERS)

/*
 * A call, and a reply with a wait, of a thread with a local id: without the kernel where that
 * is possible.  No limits but never; vector registers are dead.
 */
__L4_DEFINE_IPC(__L4_CallInside, "__L4_LocalCall", "")
__L4_DEFINE_IPC(__L4_ReplyWaitInside, "__L4_LocalReplyWait", "")

/* Unmap: MR0..MRk name flexpages, k in control bits 5..0; bit 6 flushes. */
L4_INLINE void L4_Unmap(L4_Word_t control)
{
    __L4_Utcb_t utcb = __L4_Utcb();
    __asm__ __volatile__(__L4_LOAD_MRS __L4_CALL("__L4_Unmap") __L4_STORE_MRS
                         : "+d"(control), "+D"(utcb)
                         :
                         : "rax", "rcx", "rsi", "r8", "r9", "r10", __L4_CLOBBERS);
}

/* ExchangeRegisters: returns the other kind of id of `dest`, nilthread on failure. */
L4_INLINE L4_ThreadId_t L4_ExchangeRegisters(
    L4_ThreadId_t dest, L4_Word_t control, L4_Word_t sp, L4_Word_t ip,
    L4_Word_t flags, L4_Word_t UserDefHandle, L4_ThreadId_t pager,
    L4_Word_t *old_control, L4_Word_t *old_sp, L4_Word_t *old_ip,
    L4_Word_t *old_flags, L4_Word_t *old_UserDefHandle, L4_ThreadId_t *old_pager)
{
    L4_Word_t handler = pager.raw;
    L4_ThreadId_t result;
    register L4_Word_t r8 __asm__("r8") = ip;
    register L4_Word_t r9 __asm__("r9") = flags;
    register L4_Word_t r10 __asm__("r10") = UserDefHandle;
    __asm__ __volatile__(__L4_CALL("__L4_ExchangeRegisters")
                         : "=a"(result.raw), "+S"(control), "+d"(sp), "+r"(r8),
                           "+r"(r9), "+r"(r10), "+D"(handler)
                         : "0"(dest.raw)
                         : "rcx", __L4_CLOBBERS);
    /* The fixed registers are read first: storing could disturb them. */
    ip = r8;
    flags = r9;
    UserDefHandle = r10;
    *old_control = control;
    *old_sp = sp;
    *old_ip = ip;
    *old_flags = flags;
    *old_UserDefHandle = UserDefHandle;
    old_pager->raw = handler;
    return result;
}

/* ThreadControl: creates, changes and deletes threads.  1 done, 0 see ErrorCode. */
L4_INLINE L4_Word_t L4_ThreadControl(L4_ThreadId_t dest, L4_ThreadId_t SpaceSpecifier,
                                     L4_ThreadId_t Scheduler, L4_ThreadId_t Pager,
                                     void *UtcbLocation)
{
    L4_Word_t result, thread = dest.raw, pager = Pager.raw, scheduler = Scheduler.raw;
    register L4_Word_t space __asm__("r8") = SpaceSpecifier.raw;
    register void *location __asm__("r9") = UtcbLocation;
    __asm__ __volatile__(__L4_CALL("__L4_ThreadControl")
                         : "=a"(result), "+D"(thread), "+S"(pager), "+d"(scheduler),
                           "+r"(space), "+r"(location)
                         :
                         : "rcx", "r10", __L4_CLOBBERS);
    return result;
}

/* SystemClock: microseconds since some moment in the past. */
L4_INLINE L4_Clock_t L4_SystemClock(void)
{
    L4_Clock_t clock;
    __asm__ __volatile__(__L4_CALL("__L4_SystemClock")
                         : "=a"(clock.raw)
                         :
                         : "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", __L4_CLOBBERS);
    return clock;
}

/* ThreadSwitch: gives the rest of the time slice to `dest` (nilthread: to anyone). */
L4_INLINE void L4_ThreadSwitch(L4_ThreadId_t dest)
{
    L4_Word_t thread = dest.raw;
    __asm__ __volatile__(__L4_CALL("__L4_ThreadSwitch")
                         : "+D"(thread)
                         :
                         : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", __L4_CLOBBERS);
}

/* Schedule: all ones leave a value as it is.  Returns the thread's state, 0 on failure. */
L4_INLINE L4_Word_t L4_Schedule(L4_ThreadId_t dest, L4_Word_t TimeControl,
                                L4_Word_t ProcessorControl, L4_Word_t prio,
                                L4_Word_t PreemptionControl, L4_Word_t *old_TimeControl)
{
    L4_Word_t result, thread = dest.raw;
    register L4_Word_t processor __asm__("r8") = ProcessorControl;
    register L4_Word_t preemption __asm__("r9") = PreemptionControl;
    __asm__ __volatile__(__L4_CALL("__L4_Schedule")
                         : "=a"(result), "+D"(thread), "+S"(prio), "+d"(TimeControl),
                           "+r"(processor), "+r"(preemption)
                         :
                         : "rcx", "r10", __L4_CLOBBERS);
    *old_TimeControl = TimeControl;
    return result;
}

/* SpaceControl: places the KIP and the UTCB area of a space, sets its redirector. */
L4_INLINE L4_Word_t L4_SpaceControl(L4_ThreadId_t SpaceSpecifier, L4_Word_t control,
                                    L4_Fpage_t KernelInterfacePageArea,
                                    L4_Fpage_t UtcbArea, L4_ThreadId_t Redirector,
                                    L4_Word_t *old_control)
{
    L4_Word_t result, space = SpaceSpecifier.raw, kip = KernelInterfacePageArea.raw;
    register L4_Word_t utcbs __asm__("r8") = UtcbArea.raw;
    register L4_Word_t redirector __asm__("r9") = Redirector.raw;
    __asm__ __volatile__(__L4_CALL("__L4_SpaceControl")
                         : "=a"(result), "+D"(space), "+S"(control), "+d"(kip),
                           "+r"(utcbs), "+r"(redirector)
                         :
                         : "rcx", "r10", __L4_CLOBBERS);
    *old_control = kip;
    return result;
}

/* ProcessorControl: frequencies in kHz, voltage in mV; all ones leave a value. */
L4_INLINE L4_Word_t L4_ProcessorControl(L4_Word_t ProcessorNo, L4_Word_t InternalFrequency,
                                        L4_Word_t ExternalFrequency, L4_Word_t voltage)
{
    L4_Word_t result;
    register L4_Word_t r8 __asm__("r8") = voltage;
    __asm__ __volatile__(__L4_CALL("__L4_ProcessorControl")
                         : "=a"(result), "+D"(ProcessorNo), "+S"(InternalFrequency),
                           "+d"(ExternalFrequency), "+r"(r8)
                         :
                         : "rcx", "r9", "r10", __L4_CLOBBERS);
    return result;
}

/*
 * MemoryControl: MR0..MRk name flexpages whose low bits select one of four
 * attributes.  The result comes back in RDX, unlike everywhere else.
 */
L4_INLINE L4_Word_t L4_MemoryControl(L4_Word_t control, const L4_Word_t *attributes)
{
    __L4_Utcb_t utcb = __L4_Utcb();
    L4_Word_t attribute0 = attributes[0], attribute1 = attributes[1];
    L4_Word_t attribute3 = attributes[3];
    register L4_Word_t attribute2 __asm__("r8") = attributes[2];
    register L4_Word_t r11 __asm__("r11") = attribute3;
    __asm__ __volatile__(__L4_LOAD_MRS __L4_CALL("__L4_MemoryControl")
                         : "+d"(control), "+D"(utcb), "+c"(attribute0),
                           "+S"(attribute1), "+r"(attribute2), "+r"(r11)
                         :
                         : "rax", "r9", "r10", "rbx", "r12", "r13", "r14", "r15",
                           "cc", "memory");
    return control;
}

#endif
