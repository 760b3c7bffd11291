//! Texts of any length, in the room that there is.

use ratatui::text::Span;

/// A text in lines of at most `width` columns, broken between words where that is possible; a word that no line holds begins
/// where it stands. Of more lines than `lines_max`, the last one ends with an ellipsis.
pub(super) fn wrapped(text: &str, width: u16, lines_max: usize) -> Vec<String> {
    let width = usize::from(width).max(1);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.last_mut().expect("one at least");
        if !last.is_empty() && columns(last) + 1 + columns(word) <= width {
            last.push(' ');
            last.push_str(word);
            continue;
        }
        if columns(word) > width && !last.is_empty() && columns(last) + 1 < width {
            last.push(' ');
        } else if !last.is_empty() {
            lines.push(String::new());
        }
        for letter in word.chars() {
            let last = lines.last_mut().expect("one at least");
            if columns(last) + columns(letter.encode_utf8(&mut [0; 4])) > width && !last.is_empty() {
                lines.push(letter.into());
            } else {
                last.push(letter);
            }
        }
    }
    if lines.len() > lines_max.max(1) {
        let rest = lines.split_off(lines_max.max(1) - 1).join(" ");
        lines.push(shortened(&rest, width));
    }
    lines
}

/// A text in at most `width` columns; what is cut off ends with an ellipsis.
pub(super) fn shortened(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for letter in text.chars() {
        if columns(&short) + columns(letter.encode_utf8(&mut [0; 4])) + 1 > width {
            break;
        }
        short.push(letter);
    }
    short + "…"
}

/// Columns that a text takes on a terminal.
fn columns(text: &str) -> usize {
    Span::raw(text).width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_broken_between_words() {
        let text = "can't reach a coordinator at http://127.0.0.1:7327";
        assert_eq!(wrapped(text, 80, 3), [text]);
        assert_eq!(wrapped(text, 25, 3), ["can't reach a coordinator", "at http://127.0.0.1:7327"]);
        assert_eq!(wrapped(text, 12, 9), ["can't reach", "a", "coordinator", "at http://12", "7.0.0.1:7327"]);
        assert_eq!(wrapped(text, 13, 2), ["can't reach a", "coordinator …"]);
        assert_eq!(wrapped("", 10, 3), [""]);
        assert_eq!(wrapped("ab", 0, 1), ["…"]);
    }

    #[test]
    fn names_are_cut_off_where_they_are_too_long() {
        assert_eq!(shortened("attic", 5), "attic");
        assert_eq!(shortened("attic-07", 5), "atti…");
        // A wide letter takes two columns.
        assert_eq!(shortened("日本語", 4), "日…");
    }
}
