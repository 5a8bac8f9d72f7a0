# The first instruction of every program.
#
# Initial servers start with SP = 0 and use the stack that their linker script
# reserves; a task that was started by a message has its SP already.
.section .text.entry, "ax"
.globl _start
_start:
    test    rsp, rsp
    jnz     1f
    lea     rsp, [rip + __boot_stack_top]
1:  and     rsp, -16
    xor     ebp, ebp
    call    baton_main
    ud2

# The first instruction of a further thread: its stack holds the argument and
# the function that takes it (see thread.rs).
.globl baton_thread_start
baton_thread_start:
    pop     rdi
    pop     rax
    and     rsp, -16
    xor     ebp, ebp
    call    rax
    ud2
.text
