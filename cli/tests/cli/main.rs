//! The program, run as its users run it.

mod backup;
mod browser;
mod cells;
mod cluster;
mod confirming;
mod core_hours;
mod credentials;
mod damage;
mod databases;
mod disk;
mod doctor;
mod documents;
mod export;
mod figures;
mod fleet;
mod forecasts;
mod foreign;
mod health;
mod http;
mod kubernetes;
mod leaving;
mod ledger;
mod locks;
mod logs;
mod metrics;
mod opencl;
mod outages;
mod page;
mod permissions;
mod planning;
mod processes;
mod python;
mod report;
mod resume;
mod run;
mod sequences;
mod settings;
mod signals;
mod table;
mod terminal;
mod tls;
mod usage;

use std::collections::BTreeMap;
use std::fs::{OpenOptions, Permissions};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use nqueens_coordinator::RULES;
use nqueens_faults::process;
pub(crate) use nqueens_faults::process::Outcome;
use serde_json::Value;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection, Executor};
use tempfile::TempDir;

/// The program.
pub(crate) const NQUEENS: &str = env!("CARGO_BIN_EXE_nqueens");

/// Has OpenCL find no device: to test each takes seconds.
pub(crate) const NO_DEVICES: (&str, &str) = ("OCL_ICD_VENDORS", "/there/is/none/");

/// A working directory for the program, empty unless files are put there.
pub(crate) struct Place(TempDir);

impl Place {
    /// A new one.
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    /// Puts a file there, for its owner alone.
    pub(crate) fn with_file(self, name: &str, content: &str) -> Self {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).mode(0o600).open(self.path(name));
        file.and_then(|mut file| file.write_all(content.as_bytes())).expect("the directory is writable");
        self
    }

    /// A path in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A program that would run there, with no `NQUEENS_*` variables.
    pub(crate) fn program(&self, name: impl AsRef<Path>) -> Command {
        let mut command = process::program(name.as_ref());
        command.current_dir(self.0.path());
        command
    }

    /// What a shell script says that has a small disk at `disk` and `nqueens` as `$0`; where nobody may mount one, the test is
    /// skipped. The disk is gone when the script ends.
    pub(crate) fn with_disk(&self, size: &str, script: &str) -> Option<Outcome> {
        std::fs::create_dir(self.path("disk")).expect("a folder");
        let script = format!("mount -t tmpfs -o size={size} tmpfs disk || exit 77\n{script}");
        let mut unshare = self.program("unshare");
        unshare.args(["--user", "--map-root-user", "--mount", "sh", "-c", &script, NQUEENS]);
        let outcome = Outcome::of(&mut unshare);
        if outcome.code == 77 || outcome.stderr.starts_with("unshare") {
            http::skip(&format!("the right to mount a small disk ({})", outcome.stderr.trim()));
            return None;
        }
        Some(outcome)
    }

    /// Changes the mode of a file there.
    pub(crate) fn set_mode(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.path(name), Permissions::from_mode(mode)).expect("our own file");
    }

    /// `nqueens` with blank-separated arguments, not yet started.
    pub(crate) fn command(&self, arguments: &str) -> Command {
        let mut command = self.program(NQUEENS);
        command.args(arguments.split_whitespace());
        command
    }

    /// Runs `nqueens` there with blank-separated arguments, and no variables of its own but these.
    pub(crate) fn run_with(&self, variables: &[(&str, &str)], arguments: &str) -> Outcome {
        Outcome::of(self.command(arguments).envs(variables.iter().copied()))
    }

    /// Runs `nqueens` there with blank-separated arguments.
    pub(crate) fn run(&self, arguments: &str) -> Outcome {
        self.run_with(&[], arguments)
    }

    /// What people see there who run `nqueens` with the arguments on each of these lines.
    pub(crate) fn session(&self, lines: &str) -> String {
        let run = |arguments| {
            let Outcome { code, stdout, stderr } = self.run(arguments);
            let code = if code == 0 { String::new() } else { format!("[{code}]\n") };
            format!("$ nqueens {arguments}\n{stdout}{stderr}{code}\n")
        };
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).map(run).collect()
    }

    /// What it prints there when all goes well and there is nothing else to say but how far it is.
    pub(crate) fn stdout(&self, arguments: &str) -> String {
        let outcome = self.run(arguments);
        assert_eq!((outcome.code, &*outcome.said()), (0, ""), "{arguments}");
        outcome.stdout
    }

    /// The JSON that it prints there when all goes well.
    pub(crate) fn json(&self, arguments: &str) -> Value {
        serde_json::from_str(&self.stdout(arguments)).expect("JSON")
    }

    /// The one line in which it says why it failed.
    pub(crate) fn failure(&self, arguments: &str) -> String {
        let outcome = self.run(arguments);
        assert_eq!((outcome.code, &*outcome.stdout), (1, ""), "{arguments}: {}", outcome.stderr);
        let line = outcome.stderr.strip_prefix("nqueens: ").and_then(|rest| rest.strip_suffix('\n'));
        let line = line.unwrap_or_else(|| panic!("{arguments}: {}", outcome.stderr));
        assert!(!line.contains('\n'), "{arguments}: {line}");
        line.to_owned()
    }

    /// Does something to an SQLite file there, by no code of this program's.
    pub(crate) fn sql(&self, file: &str, statements: &str) {
        self.try_sql(file, statements).expect("good SQL");
    }

    /// The same, for what may be refused.
    pub(crate) fn try_sql(&self, file: &str, statements: &str) -> sqlx::Result<()> {
        let options = SqliteConnectOptions::new().filename(self.path(file)).create_if_missing(true);
        block_on(async {
            let mut connection = SqliteConnection::connect_with(&options).await?;
            connection.execute(AssertSqlSafe(statements)).await?;
            connection.close().await
        })
    }

    /// What a query finds in an SQLite file there: its one column, as text. Whoever has the file open is not disturbed.
    pub(crate) fn ask(&self, file: &str, query: &str) -> Vec<String> {
        let options = SqliteConnectOptions::new().filename(self.path(file)).read_only(true);
        let text = format!("WITH asked(answer) AS ({query}) SELECT CAST(answer AS TEXT) FROM asked");
        block_on(async {
            let mut connection = SqliteConnection::connect_with(&options).await.expect("a database");
            let answers = sqlx::query_scalar(AssertSqlSafe(text)).fetch_all(&mut connection).await;
            connection.close().await.expect("closed");
            answers.expect("good SQL")
        })
    }

    /// The one number that a query finds in an SQLite file there.
    pub(crate) fn number(&self, file: &str, query: &str) -> u64 {
        let answers = self.ask(file, query);
        let [answer] = &answers[..] else { panic!("{query}: {answers:?}") };
        answer.parse().expect("a number")
    }

    /// The ledger's rules hold in a database there.
    pub(crate) fn check_rules(&self, db: &str) {
        for (rule, query) in RULES {
            assert_eq!(self.ask(db, query), Vec::<String>::new(), "{db}: {rule}");
        }
    }

    /// All files there, with their contents.
    pub(crate) fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let files = std::fs::read_dir(self.0.path()).expect("a directory").map(|file| file.expect("a file"));
        let named = files.map(|file| (file.file_name().into_string().expect("a name"), file.path()));
        named.map(|(name, path)| (name, std::fs::read(path).expect("a file"))).collect()
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}

/// What the program prints when all goes well.
pub(crate) fn stdout(arguments: &str) -> String {
    let outcome = Place::new().run(arguments);
    assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.stderr);
    outcome.stdout
}
