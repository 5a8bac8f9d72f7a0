// The coverage instrument: a plugin of the emulator that counts how often each block
// of code ran.
//
// Arguments: out=FILE (required); low=HEX, the lowest address that is of interest.
// The file is appended to: several machines can share it, at once too. One line per block of
// instructions as the emulator translated it, in no order:
//     ADDRESS BYTES INSTRUCTIONS COUNT
// The counts of a block that was translated several times are added up.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../bench/host/plugin/qemu.h"

__attribute__((visibility("default"))) int qemu_plugin_version = PLUGIN_API;

enum { BUCKETS = 1 << 16, REPORT_BYTES = 1 << 23 };

struct block {
    struct block *next;
    uint64_t address, bytes, instructions, count;
};

static struct block *buckets[BUCKETS];
static FILE *out;
static uint64_t low;

static struct block *block_of(uint64_t address, uint64_t bytes, uint64_t instructions)
{
    struct block **bucket = &buckets[(address ^ address >> 16) & (BUCKETS - 1)];
    for (struct block *block = *bucket; block; block = block->next)
        if (block->address == address && block->bytes == bytes)
            return block;
    struct block *block = calloc(1, sizeof *block);
    if (!block)
        abort();
    *block = (struct block){ *bucket, address, bytes, instructions, 0 };
    *bucket = block;
    return block;
}

static void on_translation(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    size_t count = qemu_plugin_tb_n_insns(tb);
    struct qemu_plugin_insn *first = qemu_plugin_tb_get_insn(tb, 0);
    uint64_t address = qemu_plugin_insn_vaddr(first), bytes = 0;
    if (address < low)
        return;
    for (size_t i = 0; i < count; i++)
        bytes += qemu_plugin_insn_size(qemu_plugin_tb_get_insn(tb, i));
    struct block *block = block_of(address, bytes, count);
    qemu_plugin_register_vcpu_insn_exec_inline(first, INLINE_ADD_U64, &block->count, 1);
}

static void at_exit(qemu_plugin_id_t id, void *userdata)
{
    (void)id;
    (void)userdata;
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct block *block = buckets[i]; block; block = block->next)
            if (block->count)
                fprintf(out, "%" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", block->address,
                        block->bytes, block->instructions, block->count);
    fclose(out);
}

__attribute__((visibility("default")))
int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "out=", 4) == 0)
            out = fopen(argv[i] + 4, "a");
        else if (sscanf(argv[i], "low=%" SCNx64, &low) != 1)
            out = NULL;
    }
    // One write for all, so that no other machine's lines come in between.
    if (out)
        setvbuf(out, NULL, _IOFBF, REPORT_BYTES);
    if (!out || !info->system_emulation) {
        fprintf(stderr, "cover: it needs out=FILE\n");
        return 1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translation);
    qemu_plugin_register_atexit_cb(id, at_exit, NULL);
    return 0;
}
