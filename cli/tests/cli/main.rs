//! The program, run as its users run it.

mod boards;
mod doctor;
mod settings;
mod table;
mod usage;

use assert_cmd::Command;
use tempfile::TempDir;

/// What a run of the program left behind.
pub(crate) struct Outcome {
    /// The exit code.
    pub(crate) code: i32,
    /// What it printed.
    pub(crate) stdout: String,
    /// What it said besides.
    pub(crate) stderr: String,
}

/// A working directory for the program, empty unless files are put there.
pub(crate) struct Place(TempDir);

impl Place {
    /// A new one.
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    /// Puts a file there.
    pub(crate) fn with_file(self, name: &str, content: &str) -> Self {
        std::fs::write(self.0.path().join(name), content).expect("the directory is writable");
        self
    }

    /// Runs `nqueens` there with blank-separated arguments, and no variables of its own but these.
    pub(crate) fn run_with(&self, variables: &[(&str, &str)], arguments: &str) -> Outcome {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nqueens"));
        for (name, _) in
            std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("NQUEENS_"))
        {
            command.env_remove(name);
        }
        command.current_dir(self.0.path()).envs(variables.iter().copied()).args(arguments.split_whitespace());
        let output = command.output().expect("the program starts");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        let code = output.status.code().expect("no signal ended it");
        Outcome { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// Runs `nqueens` there with blank-separated arguments.
    pub(crate) fn run(&self, arguments: &str) -> Outcome {
        self.run_with(&[], arguments)
    }
}

/// What the program prints when all goes well.
pub(crate) fn stdout(arguments: &str) -> String {
    let outcome = Place::new().run(arguments);
    assert_eq!(outcome.code, 0, "{arguments}: {}", outcome.stderr);
    outcome.stdout
}
