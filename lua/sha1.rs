//! SHA-1 (FIPS 180-4) at compile time. Redis names a script by it; nothing here rests on its strength.

/// The digest of `text`, in lower-case hexadecimal.
pub(crate) const fn hex(text: &[u8]) -> [u8; 40] {
    let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    // The text, one 0x80, zeros, and its length in bits as the last eight bytes of the last block.
    let blocks = (text.len() + 8) / 64 + 1;
    let mut block = 0;
    while block < blocks {
        state = compress(state, schedule(text, block, block + 1 == blocks));
        block += 1;
    }
    digits(state)
}

const fn byte(text: &[u8], at: usize) -> u32 {
    if at < text.len() {
        text[at] as u32
    } else if at == text.len() {
        0x80
    } else {
        0
    }
}

const fn schedule(text: &[u8], block: usize, last: bool) -> [u32; 80] {
    let mut w = [0; 80];
    let mut i = 0;
    while i < 16 {
        let at = block * 64 + i * 4;
        w[i] = byte(text, at) << 24 | byte(text, at + 1) << 16 | byte(text, at + 2) << 8 | byte(text, at + 3);
        i += 1;
    }
    if last {
        let bits = text.len() as u64 * 8;
        w[14] = (bits >> 32) as u32;
        w[15] = bits as u32;
    }
    while i < 80 {
        w[i] = (w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16]).rotate_left(1);
        i += 1;
    }
    w
}

const fn compress(state: [u32; 5], w: [u32; 80]) -> [u32; 5] {
    let [mut a, mut b, mut c, mut d, mut e] = state;
    let mut i = 0;
    while i < 80 {
        let (f, k) = match i {
            0..20 => (b & c | !b & d, 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6),
        };
        let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e).wrapping_add(k).wrapping_add(w[i]);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next);
        i += 1;
    }
    let [s0, s1, s2, s3, s4] = state;
    [s0.wrapping_add(a), s1.wrapping_add(b), s2.wrapping_add(c), s3.wrapping_add(d), s4.wrapping_add(e)]
}

const fn digits(state: [u32; 5]) -> [u8; 40] {
    let mut text = [0; 40];
    let mut i = 0;
    while i < 40 {
        let digit = (state[i / 8] >> (28 - 4 * (i % 8)) & 0xf) as u8;
        text[i] = if digit < 10 { b'0' + digit } else { b'a' + digit - 10 };
        i += 1;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::hex;

    extern crate std;

    fn of(text: &str) -> std::string::String {
        std::string::String::from_utf8_lossy(&hex(text.as_bytes())).into_owned()
    }

    #[test]
    fn digests_the_examples_of_the_standard() {
        assert_eq!(of("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(of(""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        assert_eq!(
            of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
        );
    }

    #[test]
    fn pads_around_the_end_of_a_block() {
        // 55 bytes leave exactly room for the padding, 56 need another block, 64 fill one.
        assert_eq!(of(&"a".repeat(55)), "c1c8bbdc22796e28c0e15163d20899b65621d65a");
        assert_eq!(of(&"a".repeat(56)), "c2db330f6083854c99d4b5bfb6e8f29f201be699");
        assert_eq!(of(&"a".repeat(64)), "0098ba824b5c16427bd7a1122a5a442a25ec644d");
    }
}
