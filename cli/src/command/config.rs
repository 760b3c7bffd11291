//! `nqueens config`: every setting, and the source of its value.

use std::process::ExitCode;

use clap::{Args, Command};
use serde_json::{Value, json};

use crate::exit::misuse;
use crate::output::Json;
use crate::settings::{Setting, Sources};

/// Shows every setting with its value and the source of the value.
///
/// Precedence: flag, NQUEENS_* variable, settings file, default. The keys of the settings file are the long names of
/// options. A key at the top level applies to every command that has the option, a key in a table named after a command to
/// that command only.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example: nqueens config bench")]
pub(crate) struct ConfigCommand {
    /// Show only the settings of this command
    command: Option<String>,

    #[command(flatten)]
    json: Json,
}

impl ConfigCommand {
    pub(crate) fn execute(self, commands: Command) -> anyhow::Result<ExitCode> {
        let only = self.command.as_deref();
        if let Some(unknown) = only.filter(|only| commands.find_subcommand(only).is_none()) {
            misuse(format_args!("there is no command '{unknown}'; 'nqueens --help' lists them")).exit();
        }
        let arguments: Vec<_> = std::env::args_os().collect();
        let sources = Sources::find(commands, &arguments).unwrap_or_else(|error| error.exit());
        let settings = sources.settings(&arguments, only).unwrap_or_else(|error| error.exit());
        let file = sources.file().map(|path| path.display().to_string());
        let line = json!({ "file": file, "settings": settings.iter().map(in_json).collect::<Vec<_>>() });
        let file = file.as_deref().unwrap_or("none");
        self.json.print(line, format_args!("settings file: {file}\n{}", table(&settings)))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn in_json(setting: &Setting) -> Value {
    json!({
        "command": setting.command,
        "setting": setting.name,
        "value": setting.value,
        "source": <&str>::from(setting.source),
        "variable": setting.variable,
    })
}

/// The settings in aligned columns under their headings, with no line end after the last.
fn table(settings: &[Setting]) -> String {
    let heading = ["COMMAND", "SETTING", "VALUE", "SOURCE", "VARIABLE"];
    let cells = settings.iter().map(|Setting { command, name, value, source, variable }| {
        let (command, value) = (command.as_deref().unwrap_or("(all)"), value.as_deref().unwrap_or("(none)"));
        [command, name, value, (*source).into(), variable]
    });
    let rows: Vec<_> = std::iter::once(heading).chain(cells).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let lines = rows.iter().map(|row| {
        let padded = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}  "));
        padded.chain([row[4].to_owned()]).collect::<String>()
    });
    lines.collect::<Vec<_>>().join("\n")
}
