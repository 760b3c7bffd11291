//! Wrong usage: one clear line and the exit code 2. And help, which ends with an example.

use crate::{NQUEENS, Outcome, Place, stdout};
use insta::assert_snapshot;

/// What the program says of these arguments, which are wrong; without the closing hint.
fn complaint(arguments: &str) -> String {
    let outcome = Place::new().run(arguments);
    assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{arguments}: {}", outcome.stderr);
    outcome.stderr.replace("\n\nFor more information, try '--help'.\n", "")
}

#[test]
fn board_sizes() {
    assert_snapshot!(complaint("solutions 0"), @r"error: invalid value '0' for '<N>': N must be a whole number from 1 to 31, not '0'");
    assert_snapshot!(complaint("solutions -3"), @r"error: invalid value '-3' for '<N>': N must be a whole number from 1 to 31, not '-3'");
    assert_snapshot!(complaint("bench --n 32"), @r"error: invalid value '32' for '--n <N>': N must be a whole number from 1 to 31, not '32'");
    assert_snapshot!(complaint("table --to x"), @r"error: invalid value 'x' for '--to <N>': N must be a whole number from 1 to 31, not 'x'");
    assert_snapshot!(complaint("table --from 9 --to 8"), @r"error: --from 9 is greater than --to 8");
}

#[test]
fn a_board_without_a_command() {
    assert_snapshot!(complaint("16"), @r"
    error: unrecognized subcommand '16'

      tip: to count the board of N = 16: 'nqueens run 16'

    Usage: nqueens [OPTIONS] <COMMAND>
    ");
    assert!(!complaint("32").contains("tip"), "no such board");
    assert!(!complaint("fleet 16").contains("tip"), "another command");
}

#[test]
fn stdout_that_is_full_is_named() {
    let place = Place::new();
    place.stdout("run 6");
    place.run("export --db nqueens-6.db --format ledger --output 6.ledger");
    for arguments in [
        "run 6",
        "status --db nqueens-6.db",
        "table --to 3",
        "table --published",
        "solutions 6",
        "export --db nqueens-6.db",
        "export --db nqueens-6.db --format ledger",
        "export --db nqueens-6.db --format bfile",
        "report --db nqueens-6.db",
        "verify 6.ledger",
        "generate completions bash",
        "--help",
        "--version",
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a full device");
        let output = place.command(arguments).stdout(full).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            said, "nqueens: can't write to stdout: No space left on device (os error 28)\n",
            "{arguments}"
        );
        assert_eq!(output.status.code(), Some(1), "{arguments}");
    }
}

#[test]
fn stdout_that_is_closed_is_told() {
    let place = Place::new();
    let mut closed = place.program("sh");
    closed.args(["-c", "exec \"$0\" table --published >&-", NQUEENS]);
    let output = closed.output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said, "nqueens: stdout is closed: what this command prints is lost\n");
    // What is thrown away on purpose is nobody's loss.
    let mut discarded = place.program("sh");
    discarded.args(["-c", "exec \"$0\" table --published >/dev/null", NQUEENS]);
    assert_eq!(Outcome::of(&mut discarded).stderr, "");
}

#[test]
fn unknown_names() {
    let wrong_names = [
        ("bench --kernel", "reference, scalar"),
        ("bench --plan", "rows, border, colours"),
        ("table --algorithm", "brute-force, backtracking, flags, bitmap, mirror, symmetry"),
        ("solutions 8 --format", "boards, rows, json"),
    ];
    for (option, names) in wrong_names {
        let said = complaint(&format!("{option} luck"));
        assert!(said.starts_with("error: invalid value 'luck' for '--"), "{said}");
        assert!(said.contains(&format!("[possible values: {names}")), "{said}");
    }
    assert!(complaint("table --iterative").contains("--algorithm <NAME>"));
    assert_snapshot!(complaint("bench --threads 0"), @r"error: invalid value '0' for '--threads <T>': threads must be a whole number from 1 to 4096, not '0'");
}

#[test]
fn names_and_threads_of_workers() {
    let threads = complaint("worker --coordinator http://head:7327 --threads 4097");
    assert_snapshot!(threads, @"error: invalid value '4097' for '--threads <COUNT>': threads must be a whole number from 1 to 4096, not '4097'");
    assert_snapshot!(complaint("run 8 --threads 4097"), @"error: invalid value '4097' for '--threads <COUNT>': threads must be a whole number from 1 to 4096, not '4097'");
    let named = |name: &str| {
        let outcome =
            Outcome::of(Place::new().command("worker --coordinator http://head:7327 --name").arg(name));
        assert_eq!((outcome.code, &*outcome.stdout), (2, ""), "{}", outcome.stderr);
        let (_, problem) = outcome.stderr.split_once("'--name <NAME>': ").expect(&outcome.stderr);
        problem.lines().next().unwrap_or_default().to_owned()
    };
    assert_snapshot!(named(" "), @"a worker name must not be empty");
    assert_snapshot!(named(&"x".repeat(65)), @"a worker name must have at most 64 bytes, and has 65");
    assert_snapshot!(named("west\u{1b}[2J"), @"a worker name must be one line of printable characters, without U+001B");
    assert_snapshot!(named("\u{202e}tsew"), @"a worker name must be one line of printable characters, without U+202E");
    assert_snapshot!(named("we\u{200b}st"), @"a worker name must be one line of printable characters, without U+200B");
}

#[test]
fn wrong_variables_are_named() {
    let outcome = Place::new().run_with(&[("NQUEENS_THREADS", "many")], "bench --n 8");
    assert_eq!(outcome.code, 2);
    assert_snapshot!(outcome.stderr, @r"
    error: invalid value 'many' for '--threads <T>': threads must be a whole number from 1 to 4096, not 'many'

      tip: the value comes from the variable NQUEENS_THREADS

    For more information, try '--help'.
    ");
}

#[test]
fn a_slow_choice_is_warned_of() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    let mut command = Command::new(env!("CARGO_BIN_EXE_nqueens"));
    command.args(["table", "--from", "12", "--to", "12", "--algorithm", "brute-force"]);
    let mut running = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(running.stderr.take().unwrap()).read_line(&mut line).unwrap();
    running.kill().unwrap();
    running.wait().unwrap();
    assert_eq!(line, "nqueens: brute-force takes minutes to hours beyond N = 10\n");
    assert_eq!(Place::new().run("table --to 4 --algorithm brute-force").stderr, "");
}

/// The names of all commands, as the help lists them.
fn commands() -> Vec<String> {
    let help = stdout("--help");
    let (_, list) = help.split_once("Commands:\n").expect("a list");
    // Each stands at the second column; what follows on further lines stands further right.
    let names = list.lines().take_while(|line| !line.is_empty()).filter_map(|line| {
        let name = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' '))?;
        name.split(' ').next().map(str::to_owned)
    });
    let names: Vec<_> = names.filter(|name| name != "help").collect();
    assert!(names.len() > 20 && names.contains(&"generate".to_owned()), "{names:?}");
    names
}

#[test]
fn every_help_ends_with_an_example() {
    for command in commands() {
        let help = stdout(&format!("{command} --help"));
        let last = help.trim_end().lines().last().unwrap_or_default().to_owned();
        assert!(last.starts_with(&format!("Example: nqueens {command}")), "{command}: '{last}'");
    }
    assert!(stdout("--help").trim_end().ends_with("Example: nqueens run 16"));
}

#[test]
fn the_version_tells_the_build() {
    let short = stdout("-V");
    assert!(short.starts_with(concat!("nqueens ", env!("CARGO_PKG_VERSION"), " (")), "{short}");
    let long = stdout("--version");
    let headings: Vec<_> = long.lines().skip(1).filter_map(|line| line.split_once(": ")).collect();
    let names: Vec<_> = headings.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["target", "instruction sets", "fastest kernel"], "{long}");
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = stdout(&format!("generate completions {shell}"));
        assert!(script.contains("solutions") && script.contains("algorithm"), "{shell}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    assert_eq!(
        place.stdout("generate man new/man1"),
        "new/man1: read them with 'man -l new/man1/nqueens.1'\n"
    );
    let page =
        |name: &str| std::fs::read_to_string(place.path(&format!("new/man1/{name}.1"))).expect("a page");
    for command in commands() {
        let text = page(&format!("nqueens-{command}"));
        assert!(text.contains(".SH SYNOPSIS") && text.contains(".SH OPTIONS"), "{command}");
        let (_, end) = text.split_once(".SH \"EXIT STATUS\"").expect("exit codes");
        let (codes, example) = end.split_once(".SH EXAMPLES").expect("an example");
        for code in ["0", "1", "2", "130"] {
            assert!(codes.contains(&format!("\\fB{code}\\fR")), "{command}: {codes}");
        }
        assert_eq!(codes.contains("\\fB5\\fR"), command == "worker", "{codes}");
        assert!(example.contains(&format!("nqueens {command}")), "{command}: {example}");
        assert!(page("nqueens").contains(&format!("nqueens\\-{command}(1)")), "{command}");
    }
    // They are true on other machines, too.
    let (_, version) =
        page("nqueens").split_once(".SH VERSION").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("it");
    assert!(!version.contains("instruction") && !version.contains("kernel"), "{version}");
    assert!(page("nqueens-run").contains("[default: one per processor]"));
    // Written again, they are the same.
    let before = page("nqueens-run");
    place.stdout("generate man new/man1");
    assert_eq!(page("nqueens-run"), before);
    assert_snapshot!(place.with_file("file", "").failure("generate man file"), @"writing manual pages to file, which must be a writable directory: File exists (os error 17)");
}
