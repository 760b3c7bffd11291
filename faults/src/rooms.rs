//! A sandbox in which everything can be broken and nothing leaks: kernel namespaces with their own disks, network and
//! processes, which end with this process.

use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Tells the process inside what is available.
const VARIABLE: &str = "NQUEENS_FAULTS_ROOMS";

/// What can be had here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rooms {
    pub(crate) disks: bool,
    /// Hosts with links between them.
    pub(crate) hosts: bool,
}

const ALONE: [&str; 7] =
    ["--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];

/// What to try, best first: a name, more arguments of `unshare`, and what must work inside.
const KINDS: [(&str, &[&str], &str); 2] = [
    (
        "disks and hosts",
        &["--net"],
        "mount -t tmpfs tmpfs /run && mkdir /run/netns && ip link set lo up && ip netns add probe &&
         ip link add probe type veth peer name probed netns probe && ip netns exec probe true && ip netns del probe",
    ),
    ("disks", &[], "mount -t tmpfs tmpfs /run"),
];

/// Goes on in a place of one's own, as the same program with the same arguments, if that can be had. It returns there,
/// or here if it can't.
pub(crate) fn enter() -> Rooms {
    if let Ok(kind) = std::env::var(VARIABLE) {
        return Rooms { disks: true, hosts: kind == KINDS[0].0 };
    }
    for (kind, more, prepare) in KINDS {
        let mut inside = Command::new("unshare");
        inside.args(ALONE).args(more).args(["sh", "-c"]);
        let mut probe = Command::new("unshare");
        probe.args(ALONE).args(more).args(["sh", "-c", prepare]).stdout(Stdio::null()).stderr(Stdio::null());
        if probe.status().is_ok_and(|status| status.success()) {
            let program = std::env::current_exe().expect("this program has a path");
            let script = format!("({prepare}) >&2 && exec \"$0\" \"$@\"");
            let error =
                inside.arg(script).arg(program).args(std::env::args_os().skip(1)).env(VARIABLE, kind).exec();
            eprintln!("unshare: {error}");
        }
        eprintln!("NOT TRIED: this system gives no namespaces with {kind}");
    }
    Rooms::default()
}
