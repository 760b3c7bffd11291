//! Connections to a coordinator.

use std::error::Error;
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};

use crate::tls::ClientTls;

/// A connection that is not made within this time is given up.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Keep-alive interval of silent connections, and the time to answer.
const KEEPALIVE: Duration = Duration::from_secs(20);

/// An address that no coordinator can have, or not with the settings beside it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{url}' is no coordinator's address ({reason}); write it like http://host:7327, or https://host:7327 with TLS"
)]
pub struct InvalidAddress {
    pub url: String,
    pub reason: String,
}

/// A connection to a coordinator, made at the first call and again after every break.
pub fn connect(url: &str, tls: Option<&ClientTls>) -> Result<Channel, InvalidAddress> {
    let invalid = |reason: String| InvalidAddress { url: url.to_owned(), reason };
    let endpoint = Endpoint::from_shared(url.to_owned()).map_err(|error| {
        let source = error.source().map(ToString::to_string);
        invalid(source.unwrap_or_else(|| error.to_string()))
    })?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true)
        .tcp_nodelay(true);
    match (endpoint.uri().scheme_str(), tls) {
        (Some("http"), None) => Ok(endpoint.connect_lazy()),
        (Some("https"), Some(tls)) => {
            let host = endpoint.uri().host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
            let endpoint = endpoint.tls_config(tls.0.clone().domain_name(host));
            Ok(endpoint.map_err(|error| invalid(error.to_string()))?.connect_lazy())
        }
        (Some("https"), None) => {
            Err(invalid("https:// wants --tls-ca, by which the coordinator is known".to_owned()))
        }
        (Some("http"), Some(_)) => Err(invalid("there is --tls-ca, and http:// goes without TLS".to_owned())),
        _ => Err(invalid("it does not begin with http:// or https://".to_owned())),
    }
}
