/*
 * l4/bootinfo.h - the records that the boot loader leaves for the root task.
 * L4_BootInfo (l4/kip.h) gives the address.
 */
#ifndef L4_BOOTINFO_H
#define L4_BOOTINFO_H

#include <l4/types.h>

#define L4_BootInfo_Magic 0x14B0021DUL
#define L4_BootInfo_Version 1UL

#define L4_BootInfo_Module 0x0001UL
#define L4_BootInfo_SimpleExec 0x0002UL
#define L4_BootInfo_EFITables 0x0101UL
#define L4_BootInfo_Multiboot 0x0102UL

typedef struct {
    L4_Word_t magic, version, size, first_entry, num_entries, reserved[3];
} L4_BootInfo_t;

/* What every record begins with; offset_next counts from the record. */
typedef struct {
    L4_Word_t type, version, offset_next;
} L4_BootRec_t;

typedef struct {
    L4_BootRec_t head;
    L4_Word_t start, size, cmdline_offset;
} L4_Boot_Module_t;

/* pstart is 0 where no memory was set aside (bss). */
typedef struct {
    L4_Word_t pstart, vstart, size;
} L4_Boot_Segment_t;

typedef struct {
    L4_BootRec_t head;
    L4_Boot_Segment_t text, data, bss;
    L4_Word_t initial_ip, flags, label, cmdline_offset;
} L4_Boot_SimpleExec_t;

L4_INLINE L4_Bool_t L4_BootInfo_Valid(const void *BootInfo)
{
    const L4_BootInfo_t *info = (const L4_BootInfo_t *)BootInfo;
    return info != (const L4_BootInfo_t *)0 && info->magic == L4_BootInfo_Magic
           && info->version == L4_BootInfo_Version;
}

L4_INLINE L4_Word_t L4_BootInfo_Size(const void *BootInfo)
{
    return ((const L4_BootInfo_t *)BootInfo)->size;
}

L4_INLINE L4_Word_t L4_BootInfo_Entries(const void *BootInfo)
{
    return ((const L4_BootInfo_t *)BootInfo)->num_entries;
}

L4_INLINE L4_BootRec_t *L4_BootInfo_FirstEntry(const void *BootInfo)
{
    return (L4_BootRec_t *)((L4_Word_t)BootInfo
                            + ((const L4_BootInfo_t *)BootInfo)->first_entry);
}

L4_INLINE L4_Word_t L4_BootRec_Type(const L4_BootRec_t *rec)
{
    return rec->type;
}

L4_INLINE L4_BootRec_t *L4_BootRec_Next(const L4_BootRec_t *rec)
{
    return (L4_BootRec_t *)((L4_Word_t)rec + rec->offset_next);
}

/* A string at an offset from a record; empty if the offset is 0. */
L4_INLINE char *__L4_BootString(const void *rec, L4_Word_t offset)
{
    static char empty[1];
    return offset ? (char *)((L4_Word_t)rec + offset) : empty;
}

/* Modules: raw files. */

L4_INLINE L4_Word_t L4_Module_Start(const L4_BootRec_t *rec)
{
    return ((const L4_Boot_Module_t *)rec)->start;
}

L4_INLINE L4_Word_t L4_Module_Size(const L4_BootRec_t *rec)
{
    return ((const L4_Boot_Module_t *)rec)->size;
}

L4_INLINE char *L4_Module_Cmdline(const L4_BootRec_t *rec)
{
    return __L4_BootString(rec, ((const L4_Boot_Module_t *)rec)->cmdline_offset);
}

/* Programs. */

#define __L4_DEFINE_SIMPLE_EXEC(name, expression)                               \
    L4_INLINE L4_Word_t L4_SimpleExec_##name(const L4_BootRec_t *rec)           \
    {                                                                           \
        const L4_Boot_SimpleExec_t *e = (const L4_Boot_SimpleExec_t *)rec;      \
        return expression;                                                      \
    }

__L4_DEFINE_SIMPLE_EXEC(TextPstart, e->text.pstart)
__L4_DEFINE_SIMPLE_EXEC(TextVstart, e->text.vstart)
__L4_DEFINE_SIMPLE_EXEC(TextSize, e->text.size)
__L4_DEFINE_SIMPLE_EXEC(DataPstart, e->data.pstart)
__L4_DEFINE_SIMPLE_EXEC(DataVstart, e->data.vstart)
__L4_DEFINE_SIMPLE_EXEC(DataSize, e->data.size)
__L4_DEFINE_SIMPLE_EXEC(BssPstart, e->bss.pstart)
__L4_DEFINE_SIMPLE_EXEC(BssVstart, e->bss.vstart)
__L4_DEFINE_SIMPLE_EXEC(BssSize, e->bss.size)
__L4_DEFINE_SIMPLE_EXEC(InitialIP, e->initial_ip)
__L4_DEFINE_SIMPLE_EXEC(Flags, e->flags)
__L4_DEFINE_SIMPLE_EXEC(Label, e->label)

L4_INLINE void L4_SimpleExec_Set_Flags(L4_BootRec_t *rec, L4_Word_t flags)
{
    ((L4_Boot_SimpleExec_t *)rec)->flags = flags;
}

L4_INLINE void L4_SimpleExec_Set_Label(L4_BootRec_t *rec, L4_Word_t label)
{
    ((L4_Boot_SimpleExec_t *)rec)->label = label;
}

L4_INLINE char *L4_SimpleExec_Cmdline(const L4_BootRec_t *rec)
{
    return __L4_BootString(rec, ((const L4_Boot_SimpleExec_t *)rec)->cmdline_offset);
}

/* The multiboot information: its address. */
L4_INLINE L4_Word_t L4_MBI_Address(const L4_BootRec_t *rec)
{
    return ((const L4_Word_t *)rec)[3];
}

#endif
