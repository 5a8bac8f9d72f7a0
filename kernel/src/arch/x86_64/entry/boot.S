// From the boot loader to 64-bit code.
//
// Two doors: PVH (QEMU -kernel; entry found through the ELF note) and multiboot2
// (GRUB). Both arrive in 32-bit protected mode with paging off, flat segments,
// interrupts off and the physical address of the loader's information in EBX.
// Both leave through boot_main(protocol, information) in the linked kernel, with
// temporary tables: the first 4 GiB at 0, at PHYS_MAP, and (1 GiB) at KERNEL_BASE.

    .section .note.pvh, "a", @note
    .balign 4
    .long 4, 8, {PVH_NOTE}              // name bytes, descriptor bytes, XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .quad pvh_entry

    .section .multiboot2, "a"
    .balign 8
multiboot2_header:
    .long 0xE85250D6, 0, multiboot2_header_end - multiboot2_header
    .long 0x100000000 - (0xE85250D6 + (multiboot2_header_end - multiboot2_header))
    .short 1, 0                         // information request: command line, modules, memory map
    .long 20, 1, 3, 6
    .balign 8
    .short 3, 0                         // entry address
    .long 12, multiboot2_entry
    .balign 8
    .short 6, 0                         // modules start on pages
    .long 8
    .short 5, 1                         // a framebuffer of any size, if the loader likes: without this
    .long 20, 0, 0, 0                   // GRUB chooses text mode, whatever its configuration says
    .balign 8
    .short 0, 0                         // end
    .long 8
multiboot2_header_end:

    .section .boot.text, "ax"
    .code32
    .global pvh_entry
pvh_entry:
    mov edi, {PVH}
    jmp boot32

    .global multiboot2_entry
multiboot2_entry:
    mov edi, {MULTIBOOT2}
    cmp eax, 0x36D76289
    je boot32
    mov esi, offset message_loader
    jmp refuse

// EDI: protocol, EBX: the loader's information.
boot32:
    cli
    cld
    mov ebp, ebx                        // CPUID destroys EBX
    mov eax, 0x80000000
    cpuid
    cmp eax, 0x80000001
    jb no_long_mode
    mov eax, 0x80000001
    cpuid
    bt edx, 29                          // long mode
    jnc no_long_mode
    bt edx, 20                          // no-execute pages
    jnc no_long_mode

    // Four directories of 2 MiB pages: 0 to 4 GiB.
    mov eax, 0x83                       // present, writable, 2 MiB
    xor ecx, ecx
1:  mov [boot_directories + ecx * 8], eax
    add eax, 0x200000
    inc ecx
    cmp ecx, 2048
    jb 1b
    mov eax, offset boot_directories + 3
    xor ecx, ecx
2:  mov [boot_low + ecx * 8], eax
    add eax, 0x1000
    inc ecx
    cmp ecx, 4
    jb 2b
    mov dword ptr [boot_high + 510 * 8], offset boot_directories + 3
    mov eax, offset boot_low + 3
    mov [boot_root], eax                // identity
    mov [boot_root + 256 * 8], eax      // PHYS_MAP
    mov dword ptr [boot_root + 511 * 8], offset boot_high + 3

    mov eax, 1 << 5                     // physical address extension and nothing else:
    mov cr4, eax                        // no fifth level, above all
    mov eax, offset boot_root
    mov cr3, eax
    mov ecx, 0xC0000080                 // EFER
    mov eax, 1 << 8                     // long mode
    xor edx, edx
    wrmsr
    mov eax, 0x80000011                 // paging, extension type, protection; caches on
    mov cr0, eax
    lgdt [boot_gdt_low]
    // A far jump to 0x08:boot64, spelled out: selectors as in boot_gdt.
    .byte 0xEA
    .long boot64
    .short 0x08

no_long_mode:
    mov esi, offset message_processor
// ESI: a zero-terminated sentence for the first serial port. Stops the machine.
refuse:
    lodsb
    test al, al
    jz 4f
    mov ah, al
    mov dx, 0x3FD
3:  in al, dx                           // wait until the transmitter is empty
    test al, 0x20
    jz 3b
    mov al, ah
    mov dx, 0x3F8
    out dx, al
    jmp refuse
4:  mov al, {EXIT_FAILURE}
    out {EXIT_PORT}, al
5:  hlt
    jmp 5b

    .code64
boot64:
    mov ax, 0x10
    mov ss, ax
    mov ds, ax
    mov es, ax
    xor eax, eax
    mov fs, ax
    mov gs, ax
    movabs rax, offset boot_high_entry
    jmp rax

    .balign 8
boot_gdt_low:
    .short 23
    .long boot_gdt - {KERNEL_BASE}

// From place.rs, at the physical address: the image moves up by EDX. EDI: protocol, ESI: the
// loader's information. Each place in the list is so many bytes behind the last one; 65535 is
// no place, but 65534 bytes of way.
    .balign 16
    .global boot_move
boot_move:
    mov ebp, esi
    mov eax, offset boot_moved_directory + 3
    mov [boot_high + 510 * 8], rax
    mov rax, cr3
    mov cr3, rax
    mov esi, offset boot_places
    mov ebx, offset kernel_load_start
6:  movzx eax, word ptr [rsi]
    add esi, 2
    test eax, eax
    jz 8f
    cmp eax, 65535
    je 7f
    add ebx, eax
    add [rbx], edx                      // below 4 GiB of a sign-extended address: no carry
    jmp 6b
7:  add ebx, 65534
    jmp 6b
8:  mov rax, cr3                        // what was written is executed from here on
    mov cr3, rax
    movabs rax, offset boot_high_entry
    jmp rax

message_loader:
    .asciz "baton: not started by a multiboot2 loader; boot it with GRUB's multiboot2 command or QEMU's -kernel\r\n"
message_processor:
    .asciz "baton: this processor has no 64-bit mode with no-execute pages, and the kernel needs both\r\n"

// Filled by the build (xtask/src/build/places.rs); without it the image stays where it is.
    .section .boot.places, "a"
    .balign 8
    .global boot_places
boot_places:      .skip {PLACES_BYTES}
    .global boot_places_end
boot_places_end:

    .section .boot.bss, "aw", @nobits
    .balign 4096
    .global boot_root
boot_root:        .skip 4096
boot_low:         .skip 4096
boot_high:        .skip 4096
boot_directories: .skip 4 * 4096
    .global boot_moved_directory
boot_moved_directory: .skip 4096
    .global boot_moved_tables
boot_moved_tables: .skip 4 * 4096

    .section .text.boot_high, "ax"
boot_high_entry:
    lgdt [rip + boot_gdt_pointer]       // the identity mapping goes away soon
    lea rsp, [rip + boot_stack_top]
    push 2                              // flags: none
    popfq
    mov esi, ebp
    xor ebp, ebp                        // ends a backtrace
    call boot_main                      // does not return
    ud2

    .section .rodata.boot_gdt, "a"
    .balign 8
boot_gdt:                               // accessed bits set: nobody writes to it
    .quad 0
    .quad 0x00AF9B000000FFFF            // 0x08 code, 64-bit
    .quad 0x00CF93000000FFFF            // 0x10 data
boot_gdt_pointer:
    .short 23
    .quad boot_gdt

    .section .bss.boot_stack, "aw", @nobits
    .balign 4096
    .global boot_stack
boot_stack:       .skip 4096 + {STACK_BYTES}      // the first page is not mapped (tables.rs)
    .global boot_stack_top
boot_stack_top:
