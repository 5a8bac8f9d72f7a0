// Macros for code that boot changes (patch.rs); in front of each file that uses them.
.ifndef baton_patch_macros
.set baton_patch_macros, 1

// The instruction stays where the processor has the feature, and becomes a no-operation
// elsewhere.
.macro patch_site feature, instruction:vararg
661:
    \instruction
662:
    .pushsection .patches, "a"
    .quad   661b
    .long   662b - 661b
    .long   \feature
    .popsection
.endm

// Where one of the conditions holds (patch.rs), what follows becomes a jump to `target` (a call
// stays a call): five bytes, into the middle of which nobody jumps.
.macro divert conditions, target
663:
    .pushsection .diverts, "a"
    .quad   663b
    .quad   \target
    .quad   \conditions
    .popsection
.endm

// The last instruction of the kernel, and room for a jump.
.macro leave_kernel mitigation, target, instruction:vararg
    divert  \mitigation, \target
    \instruction
    int3
    int3
    int3
.endm
.endif
