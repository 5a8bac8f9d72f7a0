// From a start-up message to 64-bit code in the kernel, for every processor but the first.
//
// The kernel copies this to a page below 1 MiB (processors.rs) and fills in the words behind
// the jump. A processor begins at the page's start, in real mode, and goes on on the tables of
// boot.S, under which the page is at its physical address.

    .section .rodata.trampoline, "a"
    .balign 8
    .global baton_trampoline
baton_trampoline:
    .byte 0xEB, 2f - 1f                 // jump over the words
1:  .balign 8
    .long 0                             // 8: ticket: 1 until somebody has it
    .long 0                             // 12: root table of boot.S
    .quad 0                             // 16: this processor's own root table
    .quad 0                             // 24: where the kernel goes on
    .long baton_trampoline_32 - baton_trampoline, 0x08   // 32: the page's address is added
    .long baton_trampoline_64 - baton_trampoline, 0x18   // 40: likewise
    .short 31                           // 48: the descriptor table
    .long baton_trampoline_gdt - baton_trampoline        // 50: likewise
    .short 0
    .balign 8
baton_trampoline_gdt:
    .quad 0
    .quad 0x00CF9B000000FFFF            // 0x08 code, 32-bit
    .quad 0x00CF93000000FFFF            // 0x10 data
    .quad 0x00AF9B000000FFFF            // 0x18 code, 64-bit
2:  .byte 0xFA, 0xFC                    // cli; cld
    .byte 0x66, 0x31, 0xDB              // xor ebx, ebx
    .byte 0x8C, 0xCB                    // mov bx, cs
    .byte 0x8E, 0xDB                    // mov ds, bx
    .byte 0x66, 0xC1, 0xE3, 4           // shl ebx, 4: the page's address
    .byte 0x66, 0x0F, 0x01, 0x16, 48, 0 // lgdt [48], 32-bit base
    .byte 0x0F, 0x20, 0xC0              // mov eax, cr0
    .byte 0x0C, 0x01                    // or al, 1
    .byte 0x0F, 0x22, 0xC0              // mov cr0, eax
    .byte 0x66, 0xFF, 0x2E, 32, 0       // jmp far [32], 32-bit offset

    .code32
baton_trampoline_32:
    mov eax, 0x10
    mov ds, ax
    mov es, ax
    mov ss, ax
    lock btr dword ptr [ebx + 8], 0     // one that comes late finds no ticket, and stays here
    jnc 3f
    mov eax, 1 << 5                     // physical address extension
    mov cr4, eax
    mov eax, [ebx + 12]
    mov cr3, eax
    mov ecx, 0xC0000080                 // EFER
    mov eax, 1 << 8 | 1 << 11           // long mode, no-execute pages
    xor edx, edx
    wrmsr
    mov eax, 0x80000011                 // paging, extension type, protection; caches on
    mov cr0, eax
    .byte 0xFF, 0x6B, 40                // jmp far [ebx + 40]
3:  hlt
    jmp 3b

    .code64
baton_trampoline_64:
    mov rax, [rbx + 16]
    jmp qword ptr [rbx + 24]
    .global baton_trampoline_end
baton_trampoline_end:

    .section .text.boot_processor, "ax"
    .global baton_processor_entry
baton_processor_entry:
    mov cr3, rax                        // the same code at the same address; a stack of its own
    lea rsp, [rip + boot_stack_top]
    push 2                              // flags: none
    popfq
    xor ebp, ebp                        // ends a backtrace
    call {MAIN}                         // does not return
    ud2
