/* CRC-32 of IEEE 802.3, as zlib computes it, eight bytes at a time (Kounavis and Berry, "A systematic
   approach to building high performance software-based CRC generators", 2005). Little-endian only. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint32_t crc_table[8][256];

static void crc32_prepare(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
        crc_table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int slice = 1; slice < 8; slice++) {
            uint32_t before = crc_table[slice - 1][i];
            crc_table[slice][i] = before >> 8 ^ crc_table[0][before & 0xFF];
        }
}

#define CRC_BEGIN 0xFFFFFFFFu

/* The sum so far, with more bytes, whose number is a multiple of 8. The checksum is the last one's
   complement. */
static uint32_t crc32_more(uint32_t crc, const unsigned char *bytes, size_t size) {
    for (const unsigned char *end = bytes + size; bytes < end; bytes += 8) {
        uint32_t low, high;
        memcpy(&low, bytes, 4);
        memcpy(&high, bytes + 4, 4);
        low ^= crc;
        crc = crc_table[7][low & 0xFF] ^ crc_table[6][low >> 8 & 0xFF] ^
              crc_table[5][low >> 16 & 0xFF] ^ crc_table[4][low >> 24] ^
              crc_table[3][high & 0xFF] ^ crc_table[2][high >> 8 & 0xFF] ^
              crc_table[1][high >> 16 & 0xFF] ^ crc_table[0][high >> 24];
    }
    return crc;
}
