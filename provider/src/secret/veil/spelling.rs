//! Encodings in which a text may contain a secret.

/// An encoding of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    Plain,
    /// `%2F`, as in a URL.
    Percent,
    /// `\/` and `\u002f`, as in JSON.
    Json,
    /// Percent-encoded, inside JSON.
    PercentInJson,
    /// JSON inside a JSON string.
    JsonInJson,
}

impl Spelling {
    pub(super) const ALL: &'static [Self] =
        &[Self::Plain, Self::Percent, Self::Json, Self::PercentInJson, Self::JsonInJson];

    /// Whether a text may contain this encoding. There is no escape without its first character.
    pub(super) fn may_be_in(self, text: &str) -> bool {
        match self {
            Self::Plain => true,
            Self::Percent => text.contains('%'),
            Self::Json | Self::PercentInJson | Self::JsonInJson => text.contains('\\'),
        }
    }

    /// Decodes the first `N` bytes, and returns where they end in the text. Decodes from the first letter on, because
    /// text before a secret may look like the start of an escape.
    pub(super) fn read<const N: usize>(self, letters: &[Letter]) -> Option<([u8; N], usize)> {
        let mut bytes = [0; N];
        let (mut count, mut at, mut end) = (0, 0, 0);
        while count < N {
            let rest = letters.get(at..).filter(|rest| !rest.is_empty())?;
            let (taken, letter) = match self {
                Self::Plain => (1, None),
                Self::Percent | Self::PercentInJson => {
                    percent(rest).map_or((1, None), |byte| (3, Some(u32::from(byte))))
                }
                Self::Json | Self::JsonInJson => {
                    json(rest).map_or((1, None), |(taken, code)| (taken, Some(code)))
                }
            };
            end = rest[taken - 1].end;
            at += taken;
            match letter {
                None => {
                    bytes[count] = rest[0].byte;
                    count += 1;
                }
                Some(code @ 0..=0x7F) => {
                    bytes[count] = u8::try_from(code).ok()?;
                    count += 1;
                }
                Some(code) if matches!(self, Self::Percent | Self::PercentInJson) => {
                    bytes[count] = u8::try_from(code).ok()?;
                    count += 1;
                }
                Some(code) => {
                    let mut buffer = [0; 4];
                    for byte in char::from_u32(code)?.encode_utf8(&mut buffer).bytes() {
                        if count < N {
                            bytes[count] = byte;
                            count += 1;
                        }
                    }
                }
            }
        }
        Some((bytes, end))
    }
}

/// A decoded byte, and the bytes of the text that encode it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Letter {
    pub(super) byte: u8,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Returns the letters of a text, with the outer of two encodings removed. There are two readings if a backslash follows another
/// one: it may be escaped by that, or begin an escape.
pub(super) fn readings(text: &str, spelling: Spelling) -> Vec<Vec<Letter>> {
    let plain: Vec<_> =
        text.bytes().enumerate().map(|(at, byte)| Letter { byte, start: at, end: at + 1 }).collect();
    match spelling {
        Spelling::Plain | Spelling::Percent | Spelling::Json => vec![plain],
        _ if text.contains(r"\\") => [true, false].map(|pairs| without_escapes(&plain, pairs)).into(),
        _ => vec![without_escapes(&plain, true)],
    }
}

/// `pairs`: whether two backslashes in a row are an escape.
fn without_escapes(letters: &[Letter], pairs: bool) -> Vec<Letter> {
    let mut inner = Vec::with_capacity(letters.len());
    let mut at = 0;
    while at < letters.len() {
        let rest = &letters[at..];
        let is_pair = rest.get(1).is_some_and(|next| next.byte == b'\\');
        let escape = if is_pair && !pairs { None } else { json(rest) };
        let (taken, letter) = escape.map_or((1, None), |(taken, code)| (taken, char::from_u32(code)));
        let (start, end) = (rest[0].start, rest[taken - 1].end);
        match letter {
            Some(letter) => {
                let mut buffer = [0; 4];
                let bytes = letter.encode_utf8(&mut buffer).bytes();
                inner.extend(bytes.map(|byte| Letter { byte, start, end }));
            }
            None => inner.push(Letter { byte: rest[0].byte, start, end: rest[0].end }),
        }
        at += if letter.is_some() { taken } else { 1 };
    }
    inner
}

/// Decodes `%2F` at the start.
fn percent(letters: &[Letter]) -> Option<u8> {
    let [percent, high, low, ..] = letters else { return None };
    (percent.byte == b'%').then_some(())?;
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

/// Decodes a JSON escape at the start: its length in letters, and the character.
fn json(letters: &[Letter]) -> Option<(usize, u32)> {
    let [backslash, escaped, rest @ ..] = letters else { return None };
    (backslash.byte == b'\\').then_some(())?;
    match escaped.byte {
        b'u' => {
            let digits = rest.get(..4)?;
            let code = digits.iter().try_fold(0, |code, letter| Some(code * 16 + digit(*letter)?))?;
            Some((6, code))
        }
        byte @ (b'/' | b'\\' | b'"' | b'\'') => Some((2, u32::from(byte))),
        b't' => Some((2, u32::from(b'\t'))),
        _ => None,
    }
}

fn digit(letter: Letter) -> Option<u32> {
    char::from(letter.byte).to_digit(16)
}
