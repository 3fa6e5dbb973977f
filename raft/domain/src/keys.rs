//! Keys whose byte order is the order of what they say.
//!
//! The first byte is the table (see [`crate::tables`]). Numbers are big-endian. Texts end with
//! `00 01`, and a zero byte inside one is written `00 ff`: so no text runs into its neighbour, a
//! shorter text comes before its continuations, and every text is a valid part, however hostile.

use alloc::string::String;
use alloc::vec::Vec;

const ESCAPE: u8 = 0x00;
const END: u8 = 0x01;
const ZERO: u8 = 0xff;

/// A part of a key, or all of it behind the table byte.
pub(crate) trait Key: Sized {
    /// How it is named when a key is built: borrowed.
    type Ref<'a>: Copy;

    /// Appends the key's bytes.
    fn write(key: Self::Ref<'_>, out: &mut Vec<u8>);

    /// Reads a key from the front of `bytes`; `None` when they are none.
    fn read(bytes: &mut &[u8]) -> Option<Self>;
}

impl Key for () {
    type Ref<'a> = ();

    fn write((): (), _out: &mut Vec<u8>) {}

    fn read(_bytes: &mut &[u8]) -> Option<Self> {
        Some(())
    }
}

impl Key for u8 {
    type Ref<'a> = u8;

    fn write(key: u8, out: &mut Vec<u8>) {
        out.push(key);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        Some(*first)
    }
}

impl Key for u64 {
    type Ref<'a> = u64;

    fn write(key: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&key.to_be_bytes());
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first_chunk::<8>()?;
        *bytes = rest;
        Some(Self::from_be_bytes(*first))
    }
}

impl Key for String {
    type Ref<'a> = &'a str;

    fn write(key: &str, out: &mut Vec<u8>) {
        for byte in key.bytes() {
            out.push(byte);
            if byte == ESCAPE {
                out.push(ZERO);
            }
        }
        out.extend_from_slice(&[ESCAPE, END]);
    }

    fn read(bytes: &mut &[u8]) -> Option<Self> {
        let mut text = Vec::new();
        loop {
            match u8::read(bytes)? {
                ESCAPE => match u8::read(bytes)? {
                    END => return Self::from_utf8(text).ok(),
                    ZERO => text.push(ESCAPE),
                    _ => return None,
                },
                byte => text.push(byte),
            }
        }
    }
}

macro_rules! tuple {
    ($($name:ident $part:tt),+) => {
        impl<$($name: Key),+> Key for ($($name,)+) {
            type Ref<'a> = ($($name::Ref<'a>,)+);

            fn write(key: Self::Ref<'_>, out: &mut Vec<u8>) {
                $($name::write(key.$part, out);)+
            }

            fn read(bytes: &mut &[u8]) -> Option<Self> {
                Some(($($name::read(bytes)?,)+))
            }
        }
    };
}

tuple!(A 0, B 1);
tuple!(A 0, B 1, C 2);
tuple!(A 0, B 1, C 2, D 3);

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes<K: Key>(key: K::Ref<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        K::write(key, &mut out);
        out
    }

    #[test]
    fn texts_keep_their_order_and_come_back() {
        let mut texts =
            ["", "a", "a\0", "a\0\0", "a\0b", "a\u{1}", "aa", "ab", "b", "é", "\0", "\u{10ffff}"];
        texts.sort_unstable();
        let keys: Vec<_> = texts.iter().map(|text| bytes::<(String, u64)>((text, 7))).collect();
        assert!(keys.is_sorted(), "{keys:02x?}");
        for (text, key) in texts.iter().zip(&keys) {
            let read = <(String, u64)>::read(&mut key.as_slice()).unwrap();
            assert_eq!((read.0.as_str(), read.1), (*text, 7));
        }
    }

    #[test]
    fn numbers_keep_their_order() {
        let numbers = [0, 1, 255, 256, u64::from(u32::MAX), u64::MAX];
        let keys: Vec<_> = numbers.iter().map(|number| bytes::<u64>(*number)).collect();
        assert!(keys.is_sorted());
    }

    #[test]
    fn damaged_keys_are_none() {
        assert_eq!(u64::read(&mut [0, 1].as_slice()), None);
        assert_eq!(String::read(&mut b"abc".as_slice()), None);
        assert_eq!(String::read(&mut [b'a', 0, 7].as_slice()), None);
        assert_eq!(String::read(&mut [0xff, 0, 1].as_slice()), None);
    }
}
