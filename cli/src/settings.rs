//! Settings: a flag wins over its `NQUEENS_*` variable, that over the settings file, that over the default.
//!
//! Clap is the only parser. The variables follow from the names of the options. Values of the settings file become
//! the options' defaults before anything is parsed, so a wrong value gets the same error message wherever it came
//! from.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::exit;

use clap::builder::{ArgPredicate, BoolishValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};
use nqueens_kernel::board::BoardSize;
use strum::IntoStaticStr;

use crate::exit::misuse;
use crate::output::stdout_failed;
use crate::permissions::distrust;

/// Read if no other file is asked for, and if it exists.
const FILE: &str = "nqueens.toml";

/// Stands for a value that may hold a secret.
const HIDDEN: &str = "(hidden)";

/// Reads the arguments of this process. Ends it where they are wrong (exit code 2) or ask for help.
pub(crate) fn parse<Arguments: FromArgMatches>(commands: Command) -> Arguments {
    let arguments: Vec<_> = std::env::args_os().collect();
    let parsed = Sources::find(commands, &arguments).and_then(|sources| sources.parse(&arguments));
    parsed.and_then(|matches| Arguments::from_arg_matches(&matches)).unwrap_or_else(|error| leave(&error))
}

/// Ends the process with what clap has to say: an error, the help or the version.
fn leave(said: &Error) -> ! {
    match said.print() {
        Err(error) if !said.use_stderr() && error.kind() != io::ErrorKind::BrokenPipe => {
            eprintln!("nqueens: {}", stdout_failed(error));
            exit(1)
        }
        _ => exit(said.exit_code()),
    }
}

/// The commands with a variable for each of their options.
pub(crate) fn with_variables(commands: Command) -> Command {
    commands.mut_args(with_variable).mut_subcommands(with_variables)
}

fn with_variable(arg: Arg) -> Arg {
    let Some(long) = arg.get_long() else { return arg };
    let variable = variable(long);
    let arg = if matches!(arg.get_action(), ArgAction::SetTrue) {
        arg.value_parser(BoolishValueParser::new())
    } else {
        arg
    };
    arg.env(variable)
}

/// The variable that sets an option.
fn variable(long: &str) -> String {
    format!("NQUEENS_{}", long.replace('-', "_").to_uppercase())
}

/// Which source a setting's value came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum SettingSource {
    Flag,
    Variable,
    File,
    Default,
}

/// A setting as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The command that it belongs to; none for those that every command has.
    pub(crate) command: Option<String>,
    /// The long name of its option.
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    pub(crate) source: SettingSource,
    /// The variable that would set it.
    pub(crate) variable: String,
}

/// The commands and their options, with what the settings file says as their defaults.
pub(crate) struct Sources {
    command: Command,
    file: Option<SettingsFile>,
}

impl Sources {
    /// Reads the settings file that `arguments` or the environment ask for, or else the one that lies in the working
    /// directory.
    pub(crate) fn find(command: Command, arguments: &[OsString]) -> Result<Self, Error> {
        // Only the file's name matters so far. Whoever asks for help gets it, whatever the file says.
        let Ok(first_look) = command.clone().ignore_errors(true).try_get_matches_from(arguments) else {
            return Ok(Self { command, file: None });
        };
        let asked_for = first_look.get_one::<PathBuf>("config").cloned();
        let path = asked_for.or_else(|| Path::new(FILE).exists().then(|| FILE.into()));
        let file = path.map(|path| SettingsFile::read(path, &command)).transpose()?;
        Ok(Self { command: with_defaults(command, file.as_ref()), file })
    }

    /// The settings file, if there is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| &*file.path)
    }

    fn parse(&self, arguments: &[OsString]) -> Result<ArgMatches, Error> {
        let parsed = self.command.clone().try_get_matches_from(arguments);
        parsed.map_err(|error| self.with_origin(with_command(error, arguments), arguments))
    }

    /// Every setting, in the order of the help, given these arguments: those of every command first, then those of
    /// the command `only`, or of all.
    pub(crate) fn settings(&self, arguments: &[OsString], only: Option<&str>) -> Result<Vec<Setting>, Error> {
        let mut settings = self.settings_of(&self.command, None, &self.parse(arguments)?);
        let wanted = |sub: &&Command| only.is_none_or(|only| only == sub.get_name());
        for sub in self.command.get_subcommands().filter(wanted) {
            for (name, command) in family(sub, "") {
                let alone = command.clone().mut_args(|arg| arg.required(false)).subcommand_required(false);
                let mut alone = alone.arg_required_else_help(false);
                let parsed = match alone.try_get_matches_from_mut([&name]) {
                    // One of several, or one beside another: clap can't be told to forget that they are required.
                    Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => {
                        alone.ignore_errors(true).try_get_matches_from([&name])
                    }
                    parsed => parsed,
                };
                let matches = parsed.map_err(|error| self.with_origin(error, &[]))?;
                settings.extend(self.settings_of(command, Some(&name), &matches));
            }
        }
        Ok(settings)
    }

    fn settings_of(&self, command: &Command, name: Option<&str>, matches: &ArgMatches) -> Vec<Setting> {
        let setting = |arg: &Arg| {
            let id = arg.get_id().as_str();
            let long = arg.get_long()?;
            let in_file = self.file.as_ref().is_some_and(|file| file.value(name, long).is_some());
            let values = matches.get_raw(id).map(|values| values.map(|value| value.to_string_lossy()));
            Some(Setting {
                command: name.map(str::to_owned),
                name: long.to_owned(),
                value: values.map(|values| {
                    if arg.is_hide_env_values_set() {
                        HIDDEN.to_owned()
                    } else {
                        values.collect::<Vec<_>>().join(" ")
                    }
                }),
                source: match matches.value_source(id) {
                    Some(ValueSource::CommandLine) => SettingSource::Flag,
                    Some(ValueSource::EnvVariable) => SettingSource::Variable,
                    _ if in_file => SettingSource::File,
                    _ => SettingSource::Default,
                },
                variable: variable(long),
            })
        };
        command.get_arguments().filter_map(setting).collect()
    }

    /// Says where a wrong value came from, unless it stands on the command line for all to see.
    fn with_origin(&self, mut error: Error, arguments: &[OsString]) -> Error {
        let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else { return error };
        // As the help writes it: `--threads <T>`.
        let Some(flag) = wrong.split_whitespace().next() else { return error };
        let Some(long) = flag.strip_prefix("--") else { return error };
        if arguments.iter().any(|argument| argument.to_string_lossy().starts_with(flag)) {
            return error;
        }
        let (variable, file) = (variable(long), self.file.as_ref().filter(|file| file.mentions(long)));
        let origin = match file {
            _ if std::env::var_os(&variable).is_some() => {
                format!("the value comes from the variable {variable}")
            }
            Some(file) => format!("the value comes from {}", file.path.display()),
            None => return error,
        };
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![origin.into()]));
        error
    }
}

/// Says which command counts a board, to who gave a board and no command.
fn with_command(mut error: Error, arguments: &[OsString]) -> Error {
    let first = arguments.get(1).and_then(|first| first.to_str());
    let board = first.and_then(|first| first.parse::<BoardSize>().ok());
    if let (ErrorKind::InvalidSubcommand, Some(n)) = (error.kind(), board) {
        let tip = format!("to count the board of N = {n}: 'nqueens run {n}'");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

fn with_defaults(command: Command, file: Option<&SettingsFile>) -> Command {
    let Some(file) = file else { return command };
    let command = command.mut_args(|arg| file.with_default(arg, None));
    command.mut_subcommands(|sub| {
        let name = sub.get_name().to_owned();
        with_defaults_of(sub, &name, file)
    })
}

/// A command and those below it, with what the file says in the table of this name.
fn with_defaults_of(command: Command, name: &str, file: &SettingsFile) -> Command {
    let command = with_defaults_of_groups(command.mut_args(|arg| file.with_default(arg, Some(name))));
    command.mut_subcommands(|sub| with_defaults_of(sub, name, file))
}

/// Where one of several options is required, a default will do; it gives way to another one's flag or variable.
fn with_defaults_of_groups(mut command: Command) -> Command {
    for mut group in command.get_groups().cloned().collect::<Vec<_>>() {
        let ids: Vec<_> = group.get_args().cloned().collect();
        let has_default = |arg: &Arg| ids.contains(arg.get_id()) && !arg.get_default_values().is_empty();
        if !command.get_arguments().any(has_default) {
            continue;
        }
        command = command.mut_group(group.get_id(), |group| group.required(false));
        if !group.is_multiple() {
            command = command.mut_args(|arg| {
                let others = ids.iter().filter(|id| has_default(&arg) && *id != arg.get_id()).cloned();
                let gives_way: Vec<_> = others.map(|id| (id, ArgPredicate::IsPresent, None)).collect();
                arg.default_value_ifs(gives_way)
            });
        }
    }
    command
}

/// A command and those below it, with their names.
fn family<'a>(command: &'a Command, above: &str) -> Vec<(String, &'a Command)> {
    let name = format!("{above}{}", command.get_name());
    let below = format!("{name} ");
    let mut family = vec![(name, command)];
    family.extend(command.get_subcommands().flat_map(|sub| self::family(sub, &below)));
    family
}

/// What a settings file says. Its keys are the long names of options.
struct SettingsFile {
    path: PathBuf,
    /// For every command that has such an option.
    everywhere: BTreeMap<String, String>,
    /// For one command, in the table of its name.
    by_command: BTreeMap<String, BTreeMap<String, String>>,
}

impl SettingsFile {
    /// Reads a file and holds its keys against the options that there are.
    fn read(path: PathBuf, command: &Command) -> Result<Self, Error> {
        let refuse = |why: &dyn fmt::Display| misuse(format!("settings file {}: {why}", path.display()));
        let mut file = File::open(&path).map_err(|error| refuse(&error))?;
        let metadata = file.metadata().map_err(|error| refuse(&error))?;
        if let Some(why) = distrust(&path, &metadata) {
            return Err(refuse(&why));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| refuse(&error))?;
        let content: toml::Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| text[..span.start].lines().count().max(1));
            refuse(&format!("line {line}: {}", error.message().replace('\n', ", ")))
        })?;
        let (mut everywhere, mut by_command) = (BTreeMap::new(), BTreeMap::new());
        for (key, value) in content {
            if let toml::Value::Table(table) = value {
                let sub = command.find_subcommand(&key).ok_or_else(|| {
                    refuse(&format!("there is no command '{key}'; 'nqueens --help' lists them"))
                })?;
                let family: Vec<_> = family(sub, "").into_iter().map(|(_, command)| command).collect();
                let scalars = table.into_iter().map(|(key, value)| scalar(&family, key, &value));
                by_command.insert(key, scalars.collect::<Result<_, _>>().map_err(|why| refuse(&why))?);
            } else {
                let all: Vec<_> = family(command, "").into_iter().map(|(_, command)| command).collect();
                everywhere.extend([scalar(&all, key, &value).map_err(|why| refuse(&why))?]);
            }
        }
        Ok(Self { path, everywhere, by_command })
    }

    fn value(&self, command: Option<&str>, key: &str) -> Option<&str> {
        let own = command.and_then(|command| self.by_command.get(command)?.get(key));
        own.or_else(|| self.everywhere.get(key)).map(String::as_str)
    }

    /// An option with the file's value as its default, if it has one.
    fn with_default(&self, arg: Arg, command: Option<&str>) -> Arg {
        let value = arg.get_long().and_then(|long| self.value(command, long)).map(str::to_owned);
        let Some(value) = value else { return arg };
        arg.required(false).default_value(value)
    }

    fn mentions(&self, key: &str) -> bool {
        self.by_command.values().chain([&self.everywhere]).any(|settings| settings.contains_key(key))
    }
}

/// A key that one of the commands has as an option, and its value in the words of the command line.
fn scalar(commands: &[&Command], key: String, value: &toml::Value) -> Result<(String, String), String> {
    let is_option = |arg: &Arg| arg.get_long() == Some(&key) && key != "config";
    if !commands.iter().any(|command| command.get_arguments().any(is_option)) {
        let of = if let [only] = commands { only.get_name() } else { "any command" };
        return Err(format!("'{key}' is not a setting of {of}; 'nqueens COMMAND --help' lists the settings"));
    }
    let text = match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(truth) => truth.to_string(),
        _ => return Err(format!("'{key}' must be a string, a number, true or false")),
    };
    Ok((key, text))
}
