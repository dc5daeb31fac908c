//! Reads compressed bodies. They are passed on unchanged; the unpacked copy is only read.

use std::io::{self, Write};

use bytes::Bytes;
use flate2::write::{MultiGzDecoder, ZlibDecoder};

/// Maximum number of bytes that one piece of a body may become, and all of one that is read as a whole.
const MOST: usize = 16 << 20;

/// Maximum number of bytes of a body that are read: few bytes can become very many, which takes time.
const MOST_OF_ALL: usize = 64 << 20;

/// Reads a body, piece by piece.
pub(super) enum Unpack {
    /// It is not compressed.
    Plain,
    Gzip(Box<MultiGzDecoder<Room>>),
    Deflate(Box<ZlibDecoder<Room>>),
    /// In another coding, damaged, or too large: the rest is not read.
    Unreadable,
}

impl Unpack {
    /// Returns one for a value of `Content-Encoding`.
    pub(super) fn of(coding: &str) -> Self {
        Self::maker(coding).map_or(Self::Unreadable, |make| make())
    }

    pub(super) fn reads(coding: &str) -> bool {
        Self::maker(coding).is_some()
    }

    fn maker(coding: &str) -> Option<fn() -> Self> {
        Some(match &*coding.trim().to_ascii_lowercase() {
            "" | "identity" => || Self::Plain,
            "gzip" | "x-gzip" => || Self::Gzip(Box::new(MultiGzDecoder::new(Room::default()))),
            "deflate" => || Self::Deflate(Box::new(ZlibDecoder::new(Room::default()))),
            _ => return None,
        })
    }

    pub(super) fn is_readable(&self) -> bool {
        !matches!(self, Self::Unreadable)
    }

    /// Returns what a compressed body says; `None` if it is not compressed, or cannot be read.
    pub(super) fn whole(mut self, body: &[Bytes]) -> Option<Vec<u8>> {
        let is_packed = matches!(self, Self::Gzip(_) | Self::Deflate(_));
        let mut said = Vec::new();
        for piece in body.iter().filter(|_| is_packed) {
            let part = self.take(piece);
            if !self.is_readable() || said.len() + part.len() > MOST {
                return None;
            }
            said.extend_from_slice(&part);
        }
        is_packed.then_some(said)
    }

    /// Returns what the next piece of the body says; of what cannot be read, the piece itself.
    pub(super) fn take(&mut self, piece: &Bytes) -> Bytes {
        let said = match self {
            Self::Plain | Self::Unreadable => return piece.clone(),
            Self::Gzip(decoder) => {
                written(decoder, piece).map(|()| std::mem::take(&mut decoder.get_mut().said))
            }
            Self::Deflate(decoder) => {
                written(decoder, piece).map(|()| std::mem::take(&mut decoder.get_mut().said))
            }
        };
        let Ok(said) = said else {
            *self = Self::Unreadable;
            return piece.clone();
        };
        said.into()
    }
}

/// Decompresses a piece, as far as it goes.
fn written(decoder: &mut impl Write, piece: &[u8]) -> io::Result<()> {
    decoder.write_all(piece)?;
    decoder.flush()
}

/// What was decompressed and not taken yet, and how many bytes of the body were.
#[derive(Default)]
pub(super) struct Room {
    said: Vec<u8>,
    all: usize,
}

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.said.len() + bytes.len() > MOST || self.all + bytes.len() > MOST_OF_ALL {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.said.extend_from_slice(bytes);
        self.all += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use flate2::{
        Compression,
        write::{GzEncoder, ZlibEncoder},
    };
    use proptest::prelude::*;

    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn deflate(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn read(coding: &str, body: &[u8], size: usize) -> (Vec<u8>, bool) {
        let mut unpack = Unpack::of(coding);
        let said: Vec<_> =
            body.chunks(size).map(|piece| unpack.take(&Bytes::copy_from_slice(piece))).collect();
        (said.concat(), unpack.is_readable())
    }

    proptest! {
        #[test]
        fn a_compressed_body_is_read_however_it_is_split(text in "[a-f{}\"ü]{0,4000}", size in 1..5_000_usize) {
            let text = text.as_bytes();
            for (coding, body) in [("gzip", gzip(text)), ("X-Gzip", gzip(text)), (" deflate", deflate(text)), ("", text.to_vec())] {
                prop_assert_eq!(read(coding, &body, size), (text.to_vec(), true), "{}", coding);
            }
        }

        #[test]
        fn any_bytes_are_survived(body in proptest::collection::vec(any::<u8>(), 0..400), keep in 0..60_usize, size in 1..50_usize) {
            let mut damaged = gzip(b"{\"usage\":{}}");
            damaged.truncate(keep);
            damaged.extend(&body);
            for coding in ["gzip", "deflate", "br"] {
                read(coding, &body, size);
                read(coding, &damaged, size);
            }
        }
    }

    #[test]
    fn what_each_piece_says_is_known_with_it() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let mut unpack = Unpack::of("gzip");
        for event in ["data: one\n\n", "data: two\n\n"] {
            encoder.write_all(event.as_bytes()).unwrap();
            encoder.flush().unwrap();
            assert_eq!(unpack.take(&Bytes::from(std::mem::take(encoder.get_mut()))), event);
        }
    }

    #[test]
    fn a_body_that_becomes_very_large_is_not_read_on() {
        let bomb = gzip(&vec![b' '; 4 * MOST]);
        assert!(bomb.len() < MOST / 200);
        assert!(!read("gzip", &bomb, usize::MAX).1);
        assert!(read("gzip", &bomb[..bomb.len() / 2], bomb.len() / 8).1, "each piece for itself");
        let larger = gzip(&vec![b' '; MOST_OF_ALL + MOST]);
        assert!(!read("gzip", &larger, larger.len() / 10).1, "all pieces together");
        let pieces: Vec<_> = bomb.chunks(bomb.len() / 8).map(Bytes::copy_from_slice).collect();
        assert_eq!(Unpack::of("gzip").whole(&pieces), None);
        assert_eq!(Unpack::of("gzip").whole(&[Bytes::from(gzip(b"no"))]).as_deref(), Some(&b"no"[..]));
    }
}
