//! Options of the coordinator's web page and metrics.

use std::io::{PipeWriter, Write};
use std::net::SocketAddr;
use std::str::FromStr;

use clap::Args;
use nqueens_coordinator::{Coordinator, Error, Reader, RunRow, listen};
use nqueens_proto::Token;
use nqueens_web::{Admission, Document, Server};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tracing::{info, warn};

use super::report;
use crate::client::TOKEN_VARIABLE;
use crate::exit::misuse;
use crate::ledger_file;

/// Default address of the page.
const ADDRESS: &str = "127.0.0.1:7328";

/// What a coordinator shows and tells.
#[derive(Clone, Debug, Args)]
pub(crate) struct PageOptions {
    /// Address of the web page and the Prometheus metrics, or off. A non-loopback address requires the operator token
    /// [default: 127.0.0.1:7328, if that port is free]
    #[arg(long, value_name = "HOST:PORT|off")]
    http: Option<PageAddress>,

    /// Show the page and the metrics without a token; both are read-only
    #[arg(long)]
    http_public: bool,
}

#[derive(Clone, Debug)]
enum PageAddress {
    Off,
    At(String),
}

impl FromStr for PageAddress {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "off" { Self::Off } else { Self::At(text.to_owned()) })
    }
}

/// A listener that tells that the coordinator is not ready yet, or why there is none; nothing if none is wanted.
pub(crate) struct Page(Option<Result<(Server, SocketAddr, Admission), Error>>);

impl PageOptions {
    /// Gets ready, for at most `connections_max` connections at once. Where the address can be reached from other machines,
    /// `operator` is what they have to show.
    pub(crate) async fn prepare(
        &self,
        operator: Option<&Token>,
        connections_max: usize,
    ) -> anyhow::Result<Page> {
        let listening = match &self.http {
            Some(PageAddress::Off) => None,
            Some(PageAddress::At(address)) => Some(Ok(listen(address).await?)),
            // Nobody asked for this one: a second coordinator on a machine goes without.
            None => Some(listen(ADDRESS).await),
        };
        let admit = |(listener, address)| {
            let admission = self.admission(address, operator);
            (Server::start(listener, connections_max), address, admission)
        };
        Ok(Page(listening.map(|listening| listening.map(admit))))
    }

    fn admission(&self, address: SocketAddr, operator: Option<&Token>) -> Admission {
        match operator {
            _ if self.http_public => Admission::Public,
            _ if address.ip().is_loopback() => Admission::Loopback,
            Some(token) => Admission::Token(token.clone()),
            None => misuse(format_args!(
                "{address} can be reached from other machines: give --operator-token-file (or the variable \
                 {TOKEN_VARIABLE}) to protect the page, or --http-public to show it to everyone"
            ))
            .exit(),
        }
    }
}

impl Page {
    /// Shows what `coordinator` does, until `stop`; then that it is not ready, until the task is aborted.
    pub(crate) fn open(
        self,
        coordinator: &Coordinator,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        match self.0? {
            Ok((server, address, admission)) => {
                info!(url = %format_args!("http://{address}/"), "page is up");
                Some(server.show(coordinator.operator().clone(), admission, write_document, stop))
            }
            Err(error) => {
                warn!(%error, "no page and no metrics; choose another address with --http");
                None
            }
        }
    }
}

/// Writes a document of a run for the page.
fn write_document(
    document: Document,
    runtime: &Handle,
    reader: &Reader,
    run: &RunRow,
    mut out: PipeWriter,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    runtime.block_on(async {
        match document {
            Document::Ledger => drop(ledger_file::write(reader, run, out).await?),
            Document::Report => out.write_all(report::html(reader, run).await?.as_bytes())?,
        }
        Ok(())
    })
}
