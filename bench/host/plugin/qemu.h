// QEMU's plugin interface, version 1 (QEMU 4.2 to 9): the part that the
// instrument uses. Debian ships the emulator without its header, and these few
// lines are all that is needed of it.
#ifndef BATON_BENCH_QEMU_H
#define BATON_BENCH_QEMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLUGIN_API 1

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;

typedef struct {
    const char *target_name;
    struct {
        int min, cur;
    } version;
    bool system_emulation;
    int smp_vcpus, max_vcpus;
} qemu_info_t;

enum qemu_plugin_cb_flags { CB_NO_REGS };
enum qemu_plugin_mem_rw { MEM_R = 1, MEM_W, MEM_RW };
enum qemu_plugin_op { INLINE_ADD_U64 };

typedef void (*tb_trans_cb)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*exec_cb)(unsigned vcpu, void *userdata);
typedef void (*mem_cb)(unsigned vcpu, qemu_plugin_meminfo_t, uint64_t vaddr, void *userdata);
typedef void (*exit_cb)(qemu_plugin_id_t, void *userdata);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, tb_trans_cb);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, exec_cb,
                                            enum qemu_plugin_cb_flags, void *userdata);
void qemu_plugin_register_vcpu_insn_exec_inline(struct qemu_plugin_insn *, enum qemu_plugin_op,
                                                void *ptr, uint64_t imm);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, mem_cb, enum qemu_plugin_cb_flags,
                                      enum qemu_plugin_mem_rw, void *userdata);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, exit_cb, void *userdata);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t index);
const void *qemu_plugin_insn_data(const struct qemu_plugin_insn *);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *);
char *qemu_plugin_insn_disas(const struct qemu_plugin_insn *);
unsigned qemu_plugin_mem_size_shift(qemu_plugin_meminfo_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, uint64_t vaddr);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);

#endif
