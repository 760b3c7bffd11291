//! The script that an allocation runs: one worker, and an exit code that the batch system takes for what it is.

use std::path::{Path, PathBuf};

/// What the workers of a fleet are started with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerScript {
    /// The program `nqueens`.
    pub program: PathBuf,
    /// The fleet's folder, on storage that all nodes share. Logs and spools are in it.
    pub folder: PathBuf,
    /// Arguments after `nqueens worker`, without `--spool`.
    pub arguments: Vec<String>,
}

impl WorkerScript {
    /// Where allocations write their logs, one file each.
    pub fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// A script for `sh`. `id` is what the shell makes the allocation's name of, such as `$JOB_ID`; a requeued allocation
    /// has the same, and with it the same spool.
    pub fn script(&self, id: &str) -> String {
        let program = quote(&self.program.to_string_lossy());
        let spools = quote(&self.folder.join("spool").to_string_lossy());
        let arguments: Vec<_> = self.arguments.iter().map(|argument| quote(argument)).collect();
        format!(
            "#!/bin/sh\n\
             # A worker of an nqueens fleet.\n\
             # SIGTERM reaches all processes of a job. This shell waits for its worker, which drains.\n\
             trap : TERM\n\
             {program} worker {} --spool {spools}/\"{id}\"\n\
             code=$?\n\
             # 0: told to go. 3: no more work. 4: time is up. None is a failure.\n\
             case $code in 0 | 3 | 4) exit 0 ;; esac\n\
             exit $code\n",
            arguments.join(" ")
        )
    }
}

/// Text as one word for `sh`.
pub(crate) fn quote(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A command line for people, to be pasted into a shell.
pub fn command_line(program: &str, arguments: &[String]) -> String {
    let words = std::iter::once(program).chain(arguments.iter().map(String::as_str));
    words.map(quote).collect::<Vec<_>>().join(" ")
}

/// The mark of a fleet: whoever has the same folder is the same fleet.
pub fn mark(folder: &Path) -> String {
    format!("nqueens-fleet:{}", folder.display())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What a script prints and its exit code if its worker is this shell script.
    fn outcome(worker: &str, folder: &Path) -> (Option<i32>, String) {
        let arguments = ["-c", worker, "a b", "it's", ""].map(str::to_owned).to_vec();
        let command = WorkerScript { program: "sh".into(), folder: folder.to_owned(), arguments };
        // `sh worker -c ...` would run a file named worker; a function of that name can't be in the way.
        let script = command.script("${A}_${B}").replace("sh worker -c", "sh -c");
        let output = Command::new("sh").args(["-c", &script]).env("A", "12").env("B", "3").output();
        let output = output.expect("a shell");
        (output.status.code(), String::from_utf8(output.stdout).expect("text"))
    }

    #[test]
    fn a_script_passes_its_arguments_on_and_takes_good_ends_for_good() {
        let folder = Path::new("/x/it's $HOME");
        let (code, said) = outcome("for a in \"$0\" \"$@\"; do echo \"<$a>\"; done", folder);
        assert_eq!(said, "<a b>\n<it's>\n<>\n<--spool>\n</x/it's $HOME/spool/12_3>\n");
        assert_eq!(code, Some(0));
        for (worker, script) in [(0, 0), (1, 1), (2, 2), (3, 0), (4, 0), (5, 5), (130, 130)] {
            assert_eq!(outcome(&format!("exit {worker}"), folder).0, Some(script), "{worker}");
        }
    }

    #[test]
    fn the_shell_waits_for_a_worker_that_drains() {
        // Both get the signal, as in a job; the worker takes its time.
        let worker = "trap 'echo drained; exit 3' TERM; kill -TERM $PPID $$; while :; do sleep 0.01; done";
        assert_eq!(outcome(worker, Path::new("/x")), (Some(0), "drained\n".to_owned()));
    }
}
