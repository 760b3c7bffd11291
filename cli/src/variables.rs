//! Every option is also a variable: `--disk-reserve` is `NQUEENS_DISK_RESERVE`. A flag wins over its variable.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::process::exit;

use clap::builder::BoolishValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};
use nqueens_kernel::board::BoardSize;

use crate::exit::misuse;
use crate::output::stdout_failed;
use crate::token;

const PREFIX: &str = "NQUEENS_";

/// Variables without an option: tokens, which the command line would show to every user.
const OTHERS: [&str; 3] = [token::OF_WORKER, token::OF_WORKERS, token::OF_OPERATOR];

/// Reads the arguments of this process. Ends it if they are wrong (exit code 2) or ask for help.
pub(crate) fn parse<Arguments: FromArgMatches>(commands: Command) -> Arguments {
    let arguments: Vec<_> = std::env::args_os().collect();
    let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let checked = check(&commands, variables);
    let beaten = beaten(&commands, &arguments);
    let commands = with_variables(commands, beaten);
    let parsed = commands.clone().try_get_matches_from(&arguments);
    let parsed = parsed.map_err(|error| explain(error, &commands, &arguments));
    let parsed = parsed.and_then(|matches| checked.map(|()| matches));
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

/// The commands with a variable for each of their options but the beaten ones.
pub(crate) fn with_variables(commands: Command, beaten: &[&str]) -> Command {
    let commands = commands.mut_args(|arg| with_variable(arg, beaten));
    commands.mut_subcommands(|command| with_variables(command, beaten))
}

/// Options whose variables do not count, because a worker's flag says otherwise: a join file stands for all of them.
fn beaten(commands: &Command, arguments: &[OsString]) -> &'static [&'static str] {
    let given = guess(commands, arguments);
    let Some(("worker", given)) = given.as_ref().and_then(ArgMatches::subcommand) else { return &[] };
    let by_flag = |id: &&str| given.value_source(id) == Some(ValueSource::CommandLine);
    if by_flag(&"join") {
        &["coordinator", "token-file", "tls-ca"]
    } else if ["coordinator", "token_file", "ca"].iter().any(by_flag) {
        &["join"]
    } else {
        &[]
    }
}

/// What the arguments say, as far as they make sense.
fn guess(commands: &Command, arguments: &[OsString]) -> Option<ArgMatches> {
    commands.clone().ignore_errors(true).try_get_matches_from(arguments).ok()
}

fn with_variable(arg: Arg, beaten: &[&str]) -> Arg {
    let Some(long) = arg.get_long().filter(|long| !beaten.contains(long)) else { return arg };
    let variable = variable(long);
    let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
    let arg = if is_switch { arg.value_parser(BoolishValueParser::new()) } else { arg };
    arg.env(variable)
}

fn variable(long: &str) -> String {
    format!("{PREFIX}{}", long.replace('-', "_").to_uppercase())
}

/// Refuses a variable that looks like a setting and sets none.
fn check(commands: &Command, mut names: impl Iterator<Item = String>) -> Result<(), Error> {
    let mut known = BTreeSet::from(OTHERS.map(str::to_owned));
    collect(commands, &mut known);
    let Some(unknown) = names.find(|name| name.starts_with(PREFIX) && !known.contains(name)) else {
        return Ok(());
    };
    let nearest = known.iter().min_by_key(|name| strsim::damerau_levenshtein(name, &unknown));
    let nearest = nearest.map_or("", String::as_str);
    Err(misuse(format_args!("the variable {unknown} sets nothing; did you mean {nearest}? If not, unset it")))
}

fn collect(command: &Command, known: &mut BTreeSet<String>) {
    known.extend(command.get_arguments().filter_map(Arg::get_long).map(variable));
    command.get_subcommands().for_each(|below| collect(below, known));
}

/// Says what came from variables, and which command counts a board.
fn explain(mut error: Error, commands: &Command, arguments: &[OsString]) -> Error {
    let tip = match error.kind() {
        ErrorKind::ArgumentConflict | ErrorKind::MissingRequiredArgument => counted_in(commands, arguments),
        ErrorKind::InvalidSubcommand => counting(arguments),
        _ => origin(&error, arguments),
    };
    let Some(tip) = tip else { return error };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

/// The variables that count as options here, if there are such: of options that don't go together, they may be some.
fn counted_in(commands: &Command, arguments: &[OsString]) -> Option<String> {
    let (mut command, mut given) = (commands, guess(commands, arguments)?);
    while let Some((name, below)) = given.remove_subcommand() {
        (command, given) = (command.find_subcommand(name)?, below);
    }
    let is_set = |arg: &&Arg| given.value_source(arg.get_id().as_str()) == Some(ValueSource::EnvVariable);
    let set = command.get_arguments().filter(is_set).filter_map(|arg| arg.get_env()?.to_str());
    let set: Vec<_> = set.collect();
    (!set.is_empty()).then(|| format!("variables that count as options here: {}", set.join(", ")))
}

/// The variable that a wrong value came from, if it is not on the command line.
fn origin(error: &Error, arguments: &[OsString]) -> Option<String> {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else { return None };
    // As the help writes it: `--threads <T>`.
    let flag = wrong.split_whitespace().next()?;
    let variable = variable(flag.strip_prefix("--")?);
    let is_given = arguments.iter().any(|argument| argument.to_string_lossy().starts_with(flag));
    (!is_given && std::env::var_os(&variable).is_some())
        .then(|| format!("the value comes from the variable {variable}"))
}

/// The command that counts, if a board was given in place of a command.
fn counting(arguments: &[OsString]) -> Option<String> {
    let n: BoardSize = arguments.get(1)?.to_str()?.parse().ok()?;
    Some(format!("to count the board of N = {n}: 'nqueens run {n}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_variable_is_named() {
        let commands = || {
            let options = ["threads", "tls-ca"].map(|name| Arg::new(name).long(name));
            Command::new("nqueens").subcommand(Command::new("run").args(options))
        };
        let check = |names: &[&str]| {
            let checked = check(&commands(), names.iter().map(|name| (*name).to_owned()));
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(
            check(&["HOME", "NQUEENS_THREADS", "NQUEENS_TOKEN", "NQUEENS_TLS_CA", "nqueens_x"]),
            Ok(())
        );
        for (wrong, right) in [
            ("NQUEENS_THREDS", "NQUEENS_THREADS"),
            ("NQUEENS_TSL_CA", "NQUEENS_TLS_CA"),
            ("NQUEENS_TOCKEN", "NQUEENS_TOKEN"),
        ] {
            let said = check(&["NQUEENS_THREADS", wrong]).unwrap_err();
            assert!(said.contains(&format!("{wrong} sets nothing; did you mean {right}?")), "{said}");
        }
    }
}
