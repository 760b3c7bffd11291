//! Settings files, held against a command that has options of every kind.

use std::path::PathBuf;

use clap::CommandFactory;

#[derive(clap::Parser)]
#[command(name = "nqueens")]
#[allow(dead_code, reason = "made for their options alone")]
struct Arguments {
    #[arg(long, global = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Sub,
}

#[derive(clap::Subcommand)]
#[allow(dead_code, reason = "made for their options alone")]
enum Sub {
    Run {
        #[arg(long, default_value_t = 1)]
        threads: u32,
        #[arg(long)]
        json: bool,
        #[arg(long)]
        share: Option<f64>,
    },
    Worker {
        #[arg(long)]
        name: Option<String>,
        #[arg(long, default_value_t = 1)]
        threads: u16,
    },
}

/// Whatever the bytes of the file, it is taken, or refused in words that name it.
pub(crate) fn check(bytes: &[u8]) {
    let path: PathBuf = std::env::temp_dir().join(format!("settings-{}.toml", std::process::id()));
    std::fs::write(&path, bytes).expect("a file");
    let arguments = ["nqueens".into(), "--config".into(), path.clone().into_os_string(), "run".into()];
    let commands = super::reader::with_variables(Arguments::command());
    let sources = super::reader::Sources::find(commands, &arguments);
    if let Err(error) = sources.and_then(|sources| sources.settings(&arguments, None)) {
        let said = error.to_string();
        assert!(said.contains(&path.display().to_string()), "{said}");
    }
}
