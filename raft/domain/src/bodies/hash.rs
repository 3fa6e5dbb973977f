//! SHA-256 of a body that comes in chunks: what must be known between two of them is 32 bytes.
//!
//! Between two chunks of whole blocks, the standard's intermediate value (FIPS 180-4, 6.2.2) is all
//! that the hash depends on. It is kept in the state, so it is ours and not a library's inner form:
//! every program of every version must write the same bytes.

use alloc::vec::Vec;

use sha2::block_api::compress256;

/// What the hash begins with (FIPS 180-4, 5.3.3).
const START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// Returns what is known before the first byte.
pub(super) fn start() -> [u8; 32] {
    to_bytes(START)
}

/// Takes a chunk of whole blocks in.
pub(super) fn go_on(known: [u8; 32], chunk: &[u8]) -> [u8; 32] {
    let mut words = from_bytes(known);
    let (blocks, _) = chunk.as_chunks::<64>();
    compress256(&mut words, blocks);
    to_bytes(words)
}

/// Takes the last chunk in, of any length, and returns the hash of all `size` bytes.
pub(super) fn finish(known: [u8; 32], chunk: &[u8], size: u64) -> [u8; 32] {
    let (_, rest) = chunk.as_chunks::<64>();
    // The rest, a one, zeros, and the number of bits: whole blocks again.
    let mut end = Vec::with_capacity(128);
    end.extend_from_slice(rest);
    end.push(0x80);
    end.resize(if rest.len() < 56 { 56 } else { 120 }, 0);
    end.extend_from_slice(&size.saturating_mul(8).to_be_bytes());
    go_on(go_on(known, chunk), &end)
}

fn to_bytes(words: [u32; 8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

fn from_bytes(bytes: [u8; 32]) -> [u32; 8] {
    let mut words = [0; 8];
    for (word, place) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = place.try_into().map_or(0, u32::from_be_bytes);
    }
    words
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn chunks_give_the_hash_of_the_whole() {
        for length in (0..200).chain([640, 64 * 1024, 64 * 1024 + 55, 64 * 1024 + 56]) {
            let mut bytes = vec![0; length];
            for (byte, number) in bytes.iter_mut().zip(0u64..) {
                *byte = number.wrapping_mul(167).to_le_bytes()[0];
            }
            let expected: [u8; 32] = Sha256::digest(&bytes).into();
            for chunk in [64, 128, 64 * 1024] {
                let size = u64::try_from(bytes.len()).unwrap();
                let mut rest = bytes.as_slice();
                let mut known = start();
                while rest.len() > chunk {
                    let (front, behind) = rest.split_at(chunk);
                    known = go_on(known, front);
                    rest = behind;
                }
                assert_eq!(finish(known, rest, size), expected, "{length} in {chunk}");
            }
        }
    }
}
