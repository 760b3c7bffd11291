//! Options that limit a coordinator's callers.

use std::time::Duration;

use anyhow::Context;
use clap::Args;

use crate::headings::LIMITS;
use nqueens_coordinator::{CallerLimits, Rate};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Open files beside connections: the database, its log, its readers, and what the runtime has.
const FILES_RESERVED: u64 = 100;

/// Of the other files one in so many is for unauthenticated connections, at least.
const UNAUTHENTICATED_SHARE: usize = 8;

/// Limits on connections and calls.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct ListenerLimits {
    /// Maximum number of connections with an allowed call, three quarters of them under one token; each worker uses one
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1_000_000), default_value_t = 16_000, help_heading = LIMITS)]
    connections_max: u32,

    /// Close connections that are still unauthenticated after this time
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=3_600), default_value_t = 10, help_heading = LIMITS)]
    first_call_seconds: u32,

    /// Maximum calls per second on one connection
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 1_000, help_heading = LIMITS)]
    calls_per_second: u32,

    /// Maximum worker registrations per hour under one token; each start of a worker is one
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..), default_value_t = 20_000, help_heading = LIMITS)]
    registrations_per_hour: u32,

    /// Close connections that do not read a response within this time
    #[arg(long, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=3_600), default_value_t = 60, help_heading = LIMITS)]
    answer_seconds: u32,
}

impl ListenerLimits {
    /// The limits, with no more connections than this process may open files.
    pub(crate) fn within(self, files_max: u64) -> CallerLimits {
        let most = usize::try_from(files_max.saturating_sub(FILES_RESERVED)).unwrap_or(usize::MAX).max(1);
        let (limits, wanted) = (CallerLimits::default(), self.connections_max as usize);
        let connections = wanted.min(most - most / UNAUTHENTICATED_SHARE);
        if connections < wanted {
            warn!(
                connections_max = self.connections_max,
                files_max,
                "fewer connections than --connections-max because this process may open no more files; raise its limit \
                 (ulimit -Hn, or LimitNOFILE= in the systemd unit)"
            );
        }
        CallerLimits {
            connections,
            unauthenticated: limits.unauthenticated.min(most - connections).max(1),
            first_call: Duration::from_secs(self.first_call_seconds.into()),
            calls: Rate::a_second(self.calls_per_second),
            registrations: Rate::an_hour(self.registrations_per_hour),
            write_timeout: Duration::from_secs(self.answer_seconds.into()),
        }
    }
}

/// Has the system let this process open as many files as it ever will; says how many.
pub(crate) fn files_max() -> anyhow::Result<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .context("raising the limit of open files")?;
    Ok(maximum.unwrap_or(u64::MAX))
}
