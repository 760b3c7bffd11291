//! Records the source revision and the target.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../.git/HEAD");
    println!("cargo::rerun-if-changed=../.git/refs/heads");
    let revision = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output().ok();
    let revision =
        revision.filter(|git| git.status.success()).and_then(|git| String::from_utf8(git.stdout).ok());
    println!("cargo::rustc-env=BUILD_REVISION={}", revision.as_deref().map_or("unknown", str::trim));
    let target = std::env::var("TARGET").expect("cargo says what it builds for");
    println!("cargo::rustc-env=BUILD_TARGET={target}");
}
