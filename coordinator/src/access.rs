//! Which calls a caller may make. Workers have one token or certificate, operators another.
//!
//! The role comes from the bearer token, compared in constant time, or from a URI in the client certificate,
//! `urn:nqueens:worker` or `urn:nqueens:operator`. The credential of a worker is the name of its token, or of its certificate. A missing or wrong token is `UNAUTHENTICATED`, the other role's
//! token or certificate is `PERMISSION_DENIED`. The check is made before the message is read. If there is an authority
//! for client certificates and no token, the handshake fails without a certificate. The health service is open to
//! all.

use std::sync::Arc;
use std::time::Instant;

use nqueens_model::credential::Credential;
use nqueens_proto::{Role, Token};
use tonic::metadata::MetadataMap;
use tonic::service::Interceptor;
use tonic::{Request, Status};
use tracing::debug;

use crate::error::Error;
use crate::listener::{Caller, CallerLimits, Certified, ClientAuthorities, Tls};

/// What a coordinator asks callers for, and what it lets them take up.
#[derive(Clone, Debug, Default)]
pub struct Access {
    workers: Vec<(Credential, Token)>,
    operator: Option<Token>,
    pub(crate) tls: Option<Tls>,
    pub(crate) limits: CallerLimits,
}

impl Access {
    /// Asks workers for one of these tokens, and operators for another one; or either for nothing where there is none.
    pub fn new(workers: Vec<(Credential, Token)>, operator: Option<Token>) -> Result<Self, Error> {
        let tokens: Vec<_> = workers.iter().map(|(_, token)| token).chain(&operator).collect();
        let is_twice =
            |(at, token): (usize, &&Token)| tokens[..at].iter().any(|other| other.is(token.as_bytes()));
        if tokens.iter().enumerate().any(is_twice) {
            return Err(Error::SameTokens);
        }
        Ok(Self { workers, operator, tls: None, limits: CallerLimits::default() })
    }

    /// Speaks TLS only, with this certificate and its key (PEM).
    ///
    /// With certificates of authorities in `client_ca`, callers may show one that comes from them instead of a token;
    /// where there are no tokens at all, they have to, and get no further than the handshake without.
    pub fn with_tls(self, certificate: &[u8], key: &[u8], client_ca: Option<&[u8]>) -> Result<Self, Error> {
        let required = self.workers.is_empty() && self.operator.is_none();
        let clients = client_ca.map(|pem| ClientAuthorities { pem, required });
        Ok(Self { tls: Some(Tls::new(certificate, key, clients.as_ref())?), ..self })
    }

    /// Sets the limits on callers.
    #[must_use]
    pub fn with_limits(self, limits: CallerLimits) -> Self {
        Self { limits, ..self }
    }

    /// Whether nobody is let in without a token or a certificate.
    pub fn is_complete(&self) -> bool {
        self.asks_for_certificates() || !self.workers.is_empty() && self.operator.is_some()
    }

    fn asks_for_certificates(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.asks)
    }

    pub(crate) fn workers(&self) -> Guard {
        self.guard(Role::Worker, &self.workers, &self.operators_tokens())
    }

    pub(crate) fn operators(&self) -> Guard {
        self.guard(Role::Operator, &self.operators_tokens(), &self.workers)
    }

    fn operators_tokens(&self) -> Vec<(Credential, Token)> {
        self.operator.iter().map(|token| (Credential::shared(), token.clone())).collect()
    }

    fn guard(&self, role: Role, wanted: &[(Credential, Token)], other: &[(Credential, Token)]) -> Guard {
        let is_open = wanted.is_empty() && !self.asks_for_certificates();
        Guard { role, wanted: wanted.into(), other: other.into(), is_open }
    }
}

/// Looks at who calls before anything else of a call is read.
#[derive(Clone)]
pub(crate) struct Guard {
    role: Role,
    wanted: Arc<[(Credential, Token)]>,
    /// The other service's tokens: known, but not for these calls.
    other: Arc<[(Credential, Token)]>,
    /// Whether anybody may call.
    is_open: bool,
}

impl Guard {
    /// What the caller has shown, if that is enough.
    fn check(&self, metadata: &MetadataMap, certified: Option<&Certified>) -> Result<Credential, Status> {
        let role = self.role;
        let shown = |tokens: &[(Credential, Token)]| {
            // All are compared, so that the time tells nothing.
            let found = tokens.iter().filter(|(_, token)| token.authorizes(metadata));
            found.fold(None, |_, (credential, _)| Some(credential.clone()))
        };
        if self.is_open {
            Ok(Credential::shared())
        } else if let Some(credential) = shown(&self.wanted) {
            Ok(credential)
        } else if let Some(certified) = certified.filter(|certified| certified.roles.contains(&role)) {
            Ok(certified.credential.clone())
        } else if shown(&self.other).is_some() {
            Err(Status::permission_denied(format!("this token is not for {role}s; give the {role}'s")))
        } else if certified.is_some() {
            Err(Status::permission_denied(format!(
                "this certificate is not for {role}s; give one that 'nqueens certs' made for the {role}"
            )))
        } else if !self.wanted.is_empty() {
            Err(Status::unauthenticated(format!("the {role}'s token is missing or wrong")))
        } else {
            Err(Status::unauthenticated(format!("the {role}'s certificate is missing")))
        }
    }
}

impl Interceptor for Guard {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        let Caller(connection_guard) = request.extensions().get().expect("each connection has its caller");
        let credential =
            self.check(request.metadata(), connection_guard.certified()).inspect_err(|refusal| {
                debug!(caller = %connection_guard.address(), reason = refusal.message(), "call refused");
                connection_guard.refuse();
            })?;
        connection_guard.admit(Instant::now())?;
        request.extensions_mut().insert(credential);
        Ok(request)
    }
}
