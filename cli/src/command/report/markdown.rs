//! A report as Markdown.

use std::fmt::Write;

use super::facts::Facts;
use super::summary::{checks, counts, figures, reputation, story, title, verification};

pub(super) fn write(facts: &Facts) -> String {
    let mut text = format!("## {}\n\n{}\n", plain(&title(facts)), plain(&reputation(facts)));
    for (heading, sentences) in story(facts) {
        write!(text, "\n**{heading}.** {}\n", plain(&sentences.join(" "))).expect("a string takes it");
    }
    let rows = counts(facts).into_iter().chain(figures(facts)).map(|(name, value)| [name.to_owned(), value]);
    table(&mut text, ["", ""], rows);
    let checks = checks(facts);
    if !checks.is_empty() {
        table(
            &mut text,
            ["check", "outcome", "what was found"],
            checks.into_iter().map(|(name, outcome, what)| [name.to_owned(), outcome.to_owned(), what]),
        );
    }
    text += "\nTo verify it:\n\n```sh\n";
    for (command, does) in verification(facts) {
        writeln!(text, "# {does}\n{command}").expect("a string takes it");
    }
    text + "```\n"
}

fn table<const N: usize>(text: &mut String, heading: [&str; N], rows: impl Iterator<Item = [String; N]>) {
    write!(text, "\n| {} |\n|{}\n", heading.join(" | "), "---|".repeat(N)).expect("a string takes it");
    for row in rows {
        writeln!(text, "| {} |", row.map(|cell| plain(&cell)).join(" | ")).expect("a string takes it");
    }
}

/// Text that Markdown shows as it is.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        if r"\`*_{}[]<>#|&!~$".contains(letter) {
            plain.push('\\');
        }
        plain.push(letter);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(plain("<b>*a*|`b` [c](d) & #1"), r"\<b\>\*a\*\|\`b\` \[c\](d) \& \#1");
        assert_eq!(plain("14,772,512 (border)"), "14,772,512 (border)");
    }
}
