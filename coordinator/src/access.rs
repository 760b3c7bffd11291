//! Which calls a caller may make. Workers have one token or certificate, operators another.
//!
//! The role comes from the bearer token, compared in constant time, or from a URI in the client certificate,
//! `urn:nqueens:worker` or `urn:nqueens:operator`. A missing or wrong token is `UNAUTHENTICATED`, the other role's
//! token or certificate is `PERMISSION_DENIED`. The check is made before the message is read. If there is an authority
//! for client certificates and no token, the handshake fails without a certificate. The health service is open to
//! all.

use std::time::Instant;

use nqueens_proto::{Role, Token};
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;
use tonic::{Request, Status};
use tracing::debug;

use crate::door::{Caller, ClientAuthorities, Limits, Tls};
use crate::error::Error;

/// What a coordinator asks callers for, and what it lets them take up.
#[derive(Clone, Debug, Default)]
pub struct Access {
    worker: Option<Token>,
    operator: Option<Token>,
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: Limits,
}

impl Access {
    /// Asks workers for one token and operators for another, or either for nothing where there is none.
    pub fn new(worker: Option<Token>, operator: Option<Token>) -> Result<Self, Error> {
        if let (Some(worker), Some(operator)) = (&worker, &operator) {
            let mut metadata = MetadataMap::new();
            worker.attach(&mut metadata);
            if operator.authorizes(&metadata) {
                return Err(Error::SameTokens);
            }
        }
        Ok(Self { worker, operator, tls: None, limits: Limits::default() })
    }

    /// Speaks TLS only, with this certificate and its key (PEM).
    ///
    /// With certificates of authorities in `client_ca`, callers may show one that comes from them instead of a token;
    /// where there are no tokens at all, they have to, and get no further than the handshake without.
    pub fn with_tls(self, certificate: &[u8], key: &[u8], client_ca: Option<&[u8]>) -> Result<Self, Error> {
        let required = self.worker.is_none() && self.operator.is_none();
        let clients = client_ca.map(|pem| ClientAuthorities { pem, required });
        Ok(Self { tls: Some(Tls::new(certificate, key, clients.as_ref())?), ..self })
    }

    /// Sets the limits on callers.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Whether nobody is let in without a token or a certificate.
    pub fn is_complete(&self) -> bool {
        self.asks_for_certificates() || self.worker.is_some() && self.operator.is_some()
    }

    fn asks_for_certificates(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.asks)
    }

    pub(crate) fn workers(&self) -> Guard {
        self.guard(Role::Worker, self.worker.as_ref(), self.operator.as_ref())
    }

    pub(crate) fn operators(&self) -> Guard {
        self.guard(Role::Operator, self.operator.as_ref(), self.worker.as_ref())
    }

    fn guard(&self, role: Role, wanted: Option<&Token>, other: Option<&Token>) -> Guard {
        let is_open = wanted.is_none() && !self.asks_for_certificates();
        Guard { role, wanted: wanted.cloned(), other: other.cloned(), is_open }
    }
}

/// Looks at who calls before anything else of a call is read.
#[derive(Clone)]
pub(crate) struct Guard {
    role: Role,
    wanted: Option<Token>,
    /// The other service's token: known, but not for these calls.
    other: Option<Token>,
    /// Whether anybody may call.
    is_open: bool,
}

impl Guard {
    fn check(&self, metadata: &MetadataMap, certified: Option<&[Role]>) -> Result<(), Status> {
        let role = self.role;
        let has = |token: &Option<Token>| token.as_ref().is_some_and(|token| token.authorizes(metadata));
        if self.is_open || has(&self.wanted) || certified.is_some_and(|roles| roles.contains(&role)) {
            Ok(())
        } else if has(&self.other) {
            Err(Status::permission_denied(format!("this token is not for {role}s; give the {role}'s")))
        } else if certified.is_some() {
            Err(Status::permission_denied(format!(
                "this certificate is not for {role}s; give one that 'nqueens certs' made for the {role}"
            )))
        } else if self.wanted.is_some() {
            Err(Status::unauthenticated(format!("the {role}'s token is missing or wrong")))
        } else {
            Err(Status::unauthenticated(format!("the {role}'s certificate is missing")))
        }
    }
}

impl Interceptor for Guard {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Caller(visit) = request.extensions().get().expect("each connection has its caller");
        if let Err(refusal) = self.check(request.metadata(), visit.roles()) {
            debug!(caller = %visit.address(), reason = refusal.message(), "call refused");
            visit.refuse();
            return Err(refusal);
        }
        visit.admit(Instant::now())?;
        Ok(request)
    }
}
