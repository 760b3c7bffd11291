//! Wrong usage: one clear line and the exit code 2. And help, which ends with an example.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use insta::assert_snapshot;

use crate::{NQUEENS, Outcome, Place, stdout};

#[test]
fn what_makes_no_sense_is_told_and_begins_nothing() {
    let place = Place::new();
    assert_snapshot!(place.session(
        "16
        32
        fleet 16
        solutions 0
        solutions -3
        solutions 8 --format luck
        bench 32
        bench --plan luck
        bench --threads 0
        table --to x
        table --from 9 --to 8
        table --algorithm luck
        run
        run 8.0
        run 4294967304
        run 8 9
        run 8 --plan luck
        run 8 --threads 4097
        run 8 --job-states 0
        run 8 --memory lots
        run 8 --memory 5
        table --published --from 28 --to 29
        run 8 --device none
        estimate 8 --samples 3
        estimate 8 --speed 0
        estimate 8 --threads-total 0
        export
        export --db x --by luck
        export --db x --format xml
        export --db x --format ledger --by class
        export --db x --format bfile --by class
        export twelve --db x
        status --db x --log-format xml
        status --coordinator head:7327
        report --db x --force
        verify
        verify nothing --db x
        distrust --undo --db x
        doctor --json
        doctor --ready
        doctor --protocol --ready http://127.0.0.1:1
        coordinator
        coordinator --db x --lease-seconds 10
        worker --coordinator http://head:7327 --threads 4097
        worker --coordinator http://head:7327 --time-limit=soon
        worker --coordinator http://head:7327 --time-limit=-5m
        worker --coordinator localhost:7327
        fleet slurm --workers-max 0 --join cluster.join"
    ));
    assert!(place.files().is_empty(), "nothing is left behind");
    let kernels = place.run("bench --kernel luck").stderr;
    assert!(kernels.starts_with("error: invalid value 'luck' for '--kernel <KERNEL>'"), "{kernels}");
    let possible = "[possible values: reference, scalar, portable, avx2, avx512, opencl]";
    assert!(kernels.contains(possible), "{kernels}");
    let mut hidden = place.command("worker --coordinator http://head:7327 --name");
    let hidden = Outcome::of(hidden.arg("west\u{1b}[2J"));
    let why = "a worker name must be one line of printable characters, without U+001B\n";
    assert!(hidden.code == 2 && hidden.stderr.contains(why), "{}", hidden.stderr);
}

#[test]
fn wrong_variables_are_named() {
    let outcome = Place::new().run_with(&[("NQUEENS_THREADS", "many")], "bench 8");
    assert_eq!(outcome.code, 2);
    assert_snapshot!(outcome.stderr, @r"
    error: invalid value 'many' for '--threads <T>': threads must be a whole number from 1 to 4096, not 'many'

      tip: the value comes from the variable NQUEENS_THREADS

    For more information, try '--help'.
    ");
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
        let expected = "nqueens: can't write to stdout: No space left on device (os error 28)\n";
        assert_eq!((output.status.code(), &*said), (Some(1), expected), "{arguments}");
    }
}

#[test]
fn stdout_that_is_closed_is_told_unless_its_reader_has_left() {
    let place = Place::new();
    let said = |script: &str| Outcome::of(place.program("sh").args(["-c", script, NQUEENS])).stderr;
    let closed = said("exec \"$0\" table --published >&-");
    let lost = "nqueens: stdout was closed or is the null device: what this command prints is lost\n";
    assert_eq!(closed, lost);
    // What is thrown away on purpose is nobody's loss. Where it looks like a closed stream, no more is claimed.
    assert_eq!(said("exec \"$0\" table --published >/dev/null"), "");
    assert_eq!(said("exec \"$0\" table --published 1<>/dev/null"), lost);
    let left = "{ \"$0\" solutions 16 --format rows; echo $? > code; } | head -n 1; cat code";
    let left = Outcome::of(place.program("sh").args(["-c", left, NQUEENS]));
    assert_eq!((&*left.stdout, &*left.stderr), ("0 2 4 1 12 8 13 11 14 5 15 6 3 10 7 9\n0\n", ""));
    place.stdout("run 12 --plan border --job-states 100");
    let left = "{ \"$0\" export --db nqueens-12.db; echo $? > code; } | head -n 1; cat code";
    let left = Outcome::of(place.program("sh").args(["-c", left, NQUEENS]));
    assert_eq!((left.stdout.lines().last(), &*left.stderr), (Some("0"), ""));
}

#[test]
fn a_slow_choice_is_warned_of() {
    let mut command = Command::new(NQUEENS);
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
    let names: Vec<_> = long.lines().skip(1).filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    assert_eq!(names, ["target", "instruction sets", "fastest kernel"], "{long}");
}

/// To write them, clap looks whether all commands are well formed.
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
    let said = place.stdout("generate man new/man1");
    assert_eq!(said, "new/man1: read them with 'man -l new/man1/nqueens.1'\n");
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
    // They are true on other machines, too, and the same when they are written again.
    let main = page("nqueens");
    let (_, version) = main.split_once(".SH VERSION").expect("it");
    assert!(!version.contains("instruction") && !version.contains("kernel"), "{version}");
    let before = page("nqueens-run");
    assert!(before.contains("[default: one per processor]"));
    place.stdout("generate man new/man1");
    assert_eq!(page("nqueens-run"), before);
    let said = place.with_file("file", "").failure("generate man file");
    assert_eq!(
        said,
        "writing manual pages to file, which must be a writable directory: File exists (os error 17)"
    );
}
