// Procedure calls (Bershad 1990, 3.2): the fast path of call and return. The complete
// path does the same (lrpc/visit.rs); what is said here about linkage records holds at every entry.
//
// In:  as ipc.S: RDI current tcb with SP, IP and flags saved; RBP, RCX, R11, RSP are free.
//      RSI token (call), R9 procedure (call). ZF: R8 is the return's number; all below it are the call's.
// Out: RSI A-stack, R15 cookie (call); RSI 0 (return); all others as they were.
//
// A token that is shown says: of this record, no call under way, its host waits, nothing is special
// about the host, the visitor's priority is its own. A record's caller says: it waits for this return,
// nothing is special about the two. The limits say that nothing is special about a caller.

.section .fastpath, "ax"
.balign 64
.global baton_lrpc
baton_lrpc:
divert {IBPB} | {LACKS_FAST}, baton_lrpc_complete
    jne     .Llrpc_call
    mov     r11, [rdi + {LINKAGE}]              // a foreign thread's RBP, RCX and RSP are its own
    cmp     qword ptr [r11 + {BASE} + {CALLER}], 0
    je      .Llrpc_return_otherwise
    cmp     qword ptr [rdi + {READY_LINKS}], 0  // preempted: it is queued at the caller's priority
    jne     .Llrpc_return_otherwise
    // POINT OF NO RETURN: return
    mov     rbp, [r11 + {BASE} + {CALLER}]
    mov     qword ptr [r11 + {BASE} + {CALLER}], 0
    not     dword ptr [r11 + {BASE} + {TOKEN}]  // shown
    xor     dword ptr [rdi + {RENDEZVOUS} + {STATE}], {READY} ^ {LENT}
    xor     dword ptr [rbp + {RENDEZVOUS} + {STATE}], {CALLS} ^ {READY}
    xor     esi, esi
    mov     [rip + {CPU} + {CURRENT}], rbp
    mov     rcx, [rbp + {CR3}]
    mov     cr3, rcx
    return_to_user

.Llrpc_return_otherwise:
    mov     r11, [rdi + {FLAGS}]
    jmp     baton_lrpc_complete

.balign 16
.Llrpc_call:
    cmp     dword ptr [rip + {CPU} + {LIMIT}], {LIMITS_OPEN}
    jne     baton_lrpc_complete
    mov     ebp, esi
    and     ebp, {PLACE}
    add     rbp, [rdi + {LINKAGES}]             // the record, from LINKAGE_BASE on
    cmp     rsi, [rbp + {BASE} + {TOKEN}]
    jne     baton_lrpc_complete
    cmp     r9, [rbp + {BASE} + {PROCEDURES}]
    jae     baton_lrpc_complete
    // POINT OF NO RETURN: call
    not     dword ptr [rbp + {BASE} + {TOKEN}]  // hidden
    mov     [rbp + {BASE} + {CALLER}], rdi
    xor     dword ptr [rdi + {RENDEZVOUS} + {STATE}], {READY} ^ {CALLS}
    movzx   ecx, byte ptr [rdi + {PRIORITY}]
    mov     rsi, [rbp + {BASE} + {A_STACK}]
    mov     r15, [rbp + {BASE} + {COOKIE}]
    mov     rbp, [rbp + {BASE} + {HOST}]
    mov     [rbp + {PRIORITY}], cl
    xor     dword ptr [rbp + {RENDEZVOUS} + {STATE}], {LENT} ^ {READY}
    mov     [rip + {CPU} + {CURRENT}], rbp
    mov     rcx, [rbp + {CR3}]
    mov     cr3, rcx
    return_to_user
