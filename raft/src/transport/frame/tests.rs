//! Frames cut from bytes in all kinds of pieces.

use super::*;

fn bytes_of(frames: &[Bytes]) -> Vec<u8> {
    pieces(&[], frames).concat()
}

/// Feeds bytes in pieces of `size` and returns all frames.
fn decode(bytes: &[u8], size: usize, limit: usize) -> Result<Vec<Bytes>, StreamError> {
    let mut decoder = Decoder::new(limit);
    let mut frames = Vec::new();
    for piece in bytes.chunks(size) {
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(frame) = decoder.next()? {
            frames.push(frame);
        }
    }
    if decoder.is_within_frame() { Err(StreamError::CutOff) } else { Ok(frames) }
}

#[test]
fn frames_come_back_whatever_the_pieces() {
    let lengths = [0, 1, 7, 8, 9, 2047, 2048, 2049, 100_000];
    let frames: Vec<Bytes> = lengths
        .iter()
        .map(|&length: &usize| (0..=250).cycle().take(length).collect::<Vec<u8>>().into())
        .collect();
    let bytes = bytes_of(&frames);
    for size in [1, 2, 7, 8, 9, 1000, 65_536, bytes.len()] {
        assert_eq!(decode(&bytes, size, 100_000).unwrap(), frames, "pieces of {size}");
    }
}

#[test]
fn small_frames_share_a_piece_and_large_ones_are_not_copied() {
    let small: Vec<Bytes> = (0..100).map(|_| Bytes::from_static(b"small")).collect();
    assert_eq!(pieces(&[], &small).len(), 1);
    let large = Bytes::from(vec![7; 10_000]);
    let laid_out = pieces(&[1], &[large.clone(), Bytes::from_static(b"end")]);
    assert_eq!(laid_out.len(), 3);
    assert_eq!(laid_out[1].as_ptr(), large.as_ptr());
}

#[test]
fn a_frame_in_one_piece_is_not_copied() {
    let bytes = Bytes::from(bytes_of(&[Bytes::from_static(b"frame")]));
    let mut decoder = Decoder::new(100);
    decoder.push(bytes.clone());
    let frame = decoder.next().unwrap().unwrap();
    assert_eq!(frame.as_ptr(), bytes[HEADER_BYTES..].as_ptr());
}

#[test]
fn a_length_above_the_limit_takes_no_memory() {
    let header = [&u32::MAX.to_le_bytes()[..], &[0; 4]].concat();
    for size in [1, 8] {
        let error = decode(&header, size, 1000).unwrap_err();
        assert_eq!(error, StreamError::TooLarge { bytes: u32::MAX as usize, limit: 1000 });
    }
    let mut decoder = Decoder::new(8 * 1024 * 1024);
    decoder.push(Bytes::from([&(8 * 1024 * 1024_u32).to_le_bytes()[..], &[0; 5]].concat()));
    assert_eq!(decoder.next().unwrap(), None);
    assert!(decoder.partial.capacity() <= 2 * RESERVE_BYTES_MAX);
}

#[test]
fn damage_and_a_cut_are_noticed() {
    let mut bytes = bytes_of(&[Bytes::from_static(b"frame")]);
    assert_eq!(decode(&bytes[..bytes.len() - 1], 4, 100), Err(StreamError::CutOff));
    assert_eq!(decode(&bytes[..3], 4, 100), Err(StreamError::CutOff));
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    assert_eq!(decode(&bytes, 4, 100), Err(StreamError::Damaged));
}
