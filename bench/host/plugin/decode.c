// Sorts instructions by their bytes (Intel SDM 2, chapter 2 and appendix A).
#include "decode.h"

#include <stdbool.h>
#include <string.h>

// A mark is the long no-operation `nop dword ptr [rax + rax + disp32]` with a
// displacement that no compiler emits: it does nothing, at any privilege level.
static const uint8_t MARK[7] = { 0x0F, 0x1F, 0x84, 0x00, 'B', 'T', 'N' };
enum { MARK_SIZE = 8, MARK_BEGIN = 1, MARK_END = 2, MARK_PHASE = 3, MARK_HANDLER = 4 };

struct parts {
    bool lock, operand_size, rep;
    const uint8_t *at, *end; // the opcode
};

static bool is_prefix(uint8_t byte)
{
    static const uint8_t prefixes[] = { 0x26, 0x2E, 0x36, 0x3E, 0x64, 0x65, 0x66, 0x67, 0xF0, 0xF2, 0xF3 };
    return memchr(prefixes, byte, sizeof prefixes) != NULL;
}

static struct parts split(const uint8_t *bytes, size_t size)
{
    struct parts parts = { .at = bytes, .end = bytes + size };
    while (parts.at < parts.end && is_prefix(*parts.at)) {
        parts.lock |= *parts.at == 0xF0;
        parts.operand_size |= *parts.at == 0x66;
        parts.rep |= *parts.at == 0xF3;
        parts.at++;
    }
    if (parts.at < parts.end && (*parts.at & 0xF0) == 0x40) // REX
        parts.at++;
    return parts;
}

// The byte `index` places behind the opcode's first; 0 beyond the end.
static uint8_t byte_at(const struct parts *parts, size_t index)
{
    return parts->at + index < parts->end ? parts->at[index] : 0;
}

static enum cost cost_0f01(uint8_t modrm)
{
    if (modrm == 0xF8)
        return COST_GSBASE; // swapgs
    bool memory = modrm >> 6 != 3;
    unsigned reg = modrm >> 3 & 7;
    if (memory && reg == 7)
        return COST_INVLPG;
    return memory && (reg == 2 || reg == 3) ? COST_SERIAL : COST_NONE; // lgdt, lidt
}

static enum cost cost_0fae(const struct parts *parts, uint8_t modrm)
{
    bool memory = modrm >> 6 != 3;
    unsigned reg = modrm >> 3 & 7;
    if (!memory)
        return parts->rep && (reg == 2 || reg == 3) ? COST_GSBASE : COST_NONE;
    return reg != 2 && reg != 3 && reg != 7 ? COST_XSAVE : COST_NONE; // not ldmxcsr, stmxcsr, clflush
}

static enum cost cost_0f(const struct parts *parts)
{
    uint8_t modrm = byte_at(parts, 2);
    switch (byte_at(parts, 1)) {
    case 0x05: return COST_SYSCALL;
    case 0x07: return COST_SYSRET;
    case 0x20:
    case 0x22: return COST_MOV_CR;
    case 0x06: return COST_MOV_CR; // clts writes CR0
    case 0x21:
    case 0x23: return COST_SERIAL;
    case 0x30: return COST_WRMSR;
    case 0x00: return (modrm >> 3 & 7) == 3 ? COST_SERIAL : COST_NONE; // ltr
    case 0x08:
    case 0x09:
    case 0xA2: return COST_SERIAL;
    case 0x01: return cost_0f01(modrm);
    case 0xAE: return cost_0fae(parts, modrm);
    case 0xC7: return modrm >> 6 != 3 && (modrm >> 3 & 7) >= 3 && (modrm >> 3 & 7) <= 5 ? COST_XSAVE : COST_NONE;
    case 0x38: return parts->operand_size && modrm == 0x82 ? COST_INVPCID : COST_NONE;
    default: return COST_NONE;
    }
}

enum cost decode_cost(const uint8_t *bytes, size_t size)
{
    struct parts parts = split(bytes, size);
    uint8_t opcode = byte_at(&parts, 0), modrm = byte_at(&parts, 1);
    if (parts.lock || ((opcode == 0x86 || opcode == 0x87) && modrm >> 6 != 3))
        return COST_LOCKED;
    switch (opcode) {
    case 0x0F: return cost_0f(&parts);
    case 0xCF: return COST_IRET;
    case 0xF4: return COST_HALT;
    case 0x6C: case 0x6D: case 0x6E: case 0x6F:
    case 0xE4: case 0xE5: case 0xE6: case 0xE7:
    case 0xEC: case 0xED: case 0xEE: case 0xEF: return COST_IO;
    default: return COST_NONE;
    }
}

enum role decode_role(const uint8_t *bytes, size_t size)
{
    if (size == MARK_SIZE && memcmp(bytes, MARK, sizeof MARK) == 0)
        switch (bytes[7]) {
        case MARK_BEGIN: return ROLE_BEGIN;
        case MARK_END: return ROLE_END;
        case MARK_PHASE: return ROLE_PHASE;
        case MARK_HANDLER: return ROLE_HANDLER;
        default: return ROLE_PLAIN;
        }
    static const uint8_t pause[] = { 0xF3, 0x90 };
    if (size == sizeof pause && memcmp(bytes, pause, sizeof pause) == 0)
        return ROLE_PAUSE;
    struct parts parts = split(bytes, size);
    switch (byte_at(&parts, 0)) {
    case 0xFB: return ROLE_STI;
    case 0xFA: return ROLE_CLI;
    case 0xCF: return ROLE_RETURN;
    case 0x0F: return byte_at(&parts, 1) == 0x07 ? ROLE_RETURN : ROLE_PLAIN;
    default: return ROLE_PLAIN;
    }
}
