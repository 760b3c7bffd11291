//! Names that strangers give: of machines, programs, devices. They reach terminals, pages, logs and reports, and people
//! tell machines apart by them.

/// Bytes of a name, at most.
pub const LENGTH_MAX: usize = 64;

/// Characters without a visible form of their own: all bidirectional and zero-width marks, fillers, variation selectors,
/// tags. First and last of each range of Unicode's property `Default_Ignorable_Code_Point` (`DerivedCoreProperties.txt`,
/// version 14; later versions have the same), U+FFF9..=U+FFFB, the marks of interlinear annotations, and what is empty by its
/// glyph: the Braille blank, the null notehead, the Khitan filler.
const INVISIBLE: [(char, char); 20] = [
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{202a}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{16fe4}', '\u{16fe4}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d159}', '\u{1d159}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidName {
    #[error("must not be empty")]
    Empty,
    #[error("must have at most {LENGTH_MAX} bytes, and has {0}")]
    Long(usize),
    #[error("must not begin or end with a space")]
    Untrimmed,
    #[error("must be one line of printable characters, without U+{:04X}", u32::from(*.0))]
    Unprintable(char),
}

/// Whether a text is a name: 1 to 64 bytes in one line, printable, trimmed. Its only white space is the plain space.
pub fn check(text: &str) -> Result<(), InvalidName> {
    if text.trim().is_empty() {
        return Err(InvalidName::Empty);
    }
    if text.len() > LENGTH_MAX {
        return Err(InvalidName::Long(text.len()));
    }
    if let Some(odd) = text.chars().find(|&c| !is_printable(c)) {
        return Err(InvalidName::Unprintable(odd));
    }
    if text.trim() != text {
        return Err(InvalidName::Untrimmed);
    }
    Ok(())
}

/// Whether a character is seen as itself: no control character, no white space but the plain one, nothing invisible.
pub fn is_printable(c: char) -> bool {
    let is_invisible = || INVISIBLE.iter().any(|&(first, last)| (first..=last).contains(&c));
    c == ' ' || !c.is_control() && !c.is_whitespace() && !is_invisible()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_all_scripts_are_names() {
        for name in ["west", "node 7", "r\u{f6}mer-2", "\u{5317}", "\u{5d0}\u{5d1}", "\u{1f41d}", "-", "<b>"]
        {
            assert_eq!(check(name), Ok(()), "{name}");
        }
        assert_eq!(check(&"x".repeat(64)), Ok(()));
        assert_eq!(check(&"x".repeat(65)), Err(InvalidName::Long(65)));
        assert_eq!(check(&"\u{5317}".repeat(22)), Err(InvalidName::Long(66)));
    }

    #[test]
    fn what_looks_like_another_name_is_none() {
        for empty in ["", " ", "\t\n", "\u{a0}"] {
            assert_eq!(check(empty), Err(InvalidName::Empty), "{empty:?}");
        }
        for untrimmed in [" west", "west "] {
            assert_eq!(check(untrimmed), Err(InvalidName::Untrimmed));
        }
        let odd = [
            '\0',
            '\n',
            '\r',
            '\t',
            '\u{1b}',
            '\u{7f}',
            '\u{85}', // control characters
            '\u{a0}',
            '\u{1680}',
            '\u{2003}',
            '\u{2028}',
            '\u{2029}',
            '\u{202f}',
            '\u{3000}', // white space
            '\u{61c}',
            '\u{200e}',
            '\u{200f}',
            '\u{202a}',
            '\u{202e}',
            '\u{2066}',
            '\u{2069}', // bidirectional
            '\u{200b}',
            '\u{200c}',
            '\u{200d}',
            '\u{2060}',
            '\u{feff}',
            '\u{ad}',
            '\u{34f}', // zero width
            '\u{2800}',
            '\u{1d159}',
            '\u{3164}',
            '\u{115f}',
            '\u{fe0f}',
            '\u{fffa}',
            '\u{e0041}',
        ];
        for odd in odd {
            for name in [format!("we{odd}st"), format!("west{odd}"), format!("{odd}west")] {
                assert_eq!(check(&name), Err(InvalidName::Unprintable(odd)), "{name:?}");
            }
        }
        let message = InvalidName::Unprintable('\u{202e}').to_string();
        assert_eq!(message, "must be one line of printable characters, without U+202E");
    }
}
